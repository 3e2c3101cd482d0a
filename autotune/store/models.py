"""The tables: runs and their trials. What varies in shape is JSON; what is searched is a column.

A change here needs a migration (see `autotune.store.migrations`).
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Double, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import Status
from autotune.store.records import RunRecord, TrialRecord
from autotune.untrusted import harmless, harmless_throughout

LARGEST = 1e30
"""Nothing that is measured comes near it."""


class Base(DeclarativeBase):
    """All tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[str]: JSON}  # noqa: RUF012 (SQLAlchemy's)


class RunRow(Base):
    """One tuning. `state`: running, done, failed, interrupted. `problem`: the workload, the
    figures with their resolved ceilings, the knobs and the budget, as JSON. `result`: what the
    run said at its end; null if it came to none, or an older version ran it."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(String(64), index=True)
    device: Mapped[str] = mapped_column(String(64))
    fingerprint: Mapped[str]
    started: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    ended: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    state: Mapped[str] = mapped_column(String(16))
    outcome: Mapped[str] = mapped_column(default="")
    problem: Mapped[dict[str, Any]]
    profile: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    trials: Mapped[list["TrialRow"]] = relationship(
        back_populates="run", order_by="TrialRow.number", cascade="all, delete-orphan"
    )


class TrialRow(Base):
    """One setting applied and measured. `role`: baseline, search, check (of a smaller
    setting before its proof), confirm-winner, confirm-baseline, long-winner or long-baseline.
    `figures`: name -> [value, spread]; `measured`: the
    phases that were really run, the others' figures come from earlier trials. `courses`: what
    those showed second by second, by phase, of the trials that are compared with each other."""

    __tablename__ = "trials"
    __table_args__ = (UniqueConstraint("run_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    number: Mapped[int]
    role: Mapped[str] = mapped_column(String(16))
    started: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    seconds: Mapped[float] = mapped_column(Double)
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(default="")
    requested: Mapped[dict[str, Any]]
    effective: Mapped[dict[str, Any]]
    figures: Mapped[dict[str, Any]]
    measured: Mapped[list[str]]
    bytes_written: Mapped[int] = mapped_column(default=0)
    courses: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    run: Mapped[RunRow] = relationship(back_populates="trials")


def _utc(stored: datetime) -> datetime:
    """A database may forget the time zone; everything stored is UTC."""
    return stored.replace(tzinfo=UTC) if stored.tzinfo is None else stored


def _whole(stored: int) -> int:
    """SQLite keeps a text in a column of numbers."""
    if not isinstance(stored, int):
        raise TypeError(f"{stored!r} is no number")
    return stored


def _text(stored: str) -> str:
    """What moves no cursor, whoever wrote it."""
    if not isinstance(stored, str):
        raise TypeError(f"{stored!r} is no text")
    return harmless(stored)


def run_record(row: RunRow) -> RunRecord:
    """A run, free of its session. Raise ValueError or TypeError if it makes no sense."""
    return RunRecord(
        row.id,
        _text(row.uuid),
        _text(row.device),
        _text(row.fingerprint),
        _utc(row.started),
        _utc(row.ended) if row.ended else None,
        _text(row.state),
        _text(row.outcome),
        dict(row.problem),
        dict(row.profile) if row.profile is not None else None,
        len(row.trials),
    )


def trial_record(row: TrialRow) -> TrialRecord:
    """A trial, free of its session. Raise ValueError or TypeError if it makes no sense."""
    return TrialRecord(
        _whole(row.number),
        _text(row.role),
        _utc(row.started),
        _amount(row.seconds),
        Status(row.status),
        _text(row.reason),
        _setting(row.requested),
        _setting(row.effective),
        {_text(name): _estimate(*pair) for name, pair in dict(row.figures).items()},
        tuple(map(_text, row.measured)),
        _whole(row.bytes_written),
    )


def _setting(stored: dict[str, Any]) -> Setting:
    """The values of knobs: whole numbers and words."""
    if not all(isinstance(value, int | str) for value in stored.values()):
        raise TypeError(f"{stored!r} is no setting")
    return dict(harmless_throughout(stored))


def _estimate(value: float, spread: float) -> Estimate:
    return Estimate(_amount(value), _amount(spread))


def _amount(stored: float) -> float:
    """What can be measured: it has a size."""
    if not isinstance(stored, int | float) or not 0 <= stored < LARGEST:
        raise ValueError(f"{stored!r} is no amount")
    return stored
