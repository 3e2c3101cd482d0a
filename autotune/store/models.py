"""The tables: runs and their trials. What varies in shape is JSON; what is searched is a column.

A change here needs a migration (see `autotune.store.migrations`).
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Double, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.store.records import RunRecord, TrialRecord


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


def run_record(row: RunRow) -> RunRecord:
    """A run, free of its session. Raise ValueError or TypeError if it makes no sense."""
    return RunRecord(
        row.id,
        row.uuid,
        row.device,
        row.fingerprint,
        _utc(row.started),
        _utc(row.ended) if row.ended else None,
        row.state,
        row.outcome,
        dict(row.problem),
        row.profile,
        len(row.trials),
    )


def trial_record(row: TrialRow) -> TrialRecord:
    """A trial, free of its session. Raise ValueError or TypeError if it makes no sense."""
    return TrialRecord(
        row.number,
        row.role,
        _utc(row.started),
        row.seconds,
        Status(row.status),
        row.reason,
        dict(row.requested),
        dict(row.effective),
        {name: Estimate(*pair) for name, pair in dict(row.figures).items()},
        tuple(row.measured),
        row.bytes_written,
    )
