"""The tables: runs and their trials. What varies in shape is JSON; what is searched is a column."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, DateTime, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """All tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[str]: JSON}  # noqa: RUF012 (SQLAlchemy's)


class RunRow(Base):
    """One tuning. `state`: running, done, failed, interrupted. `problem`: the workload, the
    figures with their resolved ceilings, the knobs and the budget, as JSON."""

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
    trials: Mapped[list["TrialRow"]] = relationship(
        back_populates="run", order_by="TrialRow.number", cascade="all, delete-orphan"
    )


class TrialRow(Base):
    """One setting applied and measured. `role`: baseline, search, winner or check-back (the
    baseline again, in turn with the winner). `figures`: name -> [value, spread]; `measured`: the
    phases that were really run, the others' figures come from earlier trials."""

    __tablename__ = "trials"
    __table_args__ = (UniqueConstraint("run_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    number: Mapped[int]
    role: Mapped[str] = mapped_column(String(16))
    started: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    seconds: Mapped[float]
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(default="")
    requested: Mapped[dict[str, Any]]
    effective: Mapped[dict[str, Any]]
    figures: Mapped[dict[str, Any]]
    measured: Mapped[list[str]]
    bytes_written: Mapped[int] = mapped_column(default=0)
    run: Mapped[RunRow] = relationship(back_populates="trials")
