"""The store: every run and trial, in SQLite through SQLAlchemy.

A trial is there whole or not at all, and before the next one starts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from autotune.errors import AutotuneError, UsageError
from autotune.search import Estimate, Setting, Status, Trial
from autotune.store.models import Base, RunRow, TrialRow

FILE_NAME = "autotune.db"
BUSY_TIMEOUT_S = 30


@dataclass(frozen=True)
class TrialRecord:
    """A trial as stored: what was asked, what took effect, what it showed."""

    number: int
    role: str
    started: datetime
    seconds: float
    status: Status
    reason: str
    requested: Setting
    effective: Setting
    figures: dict[str, Estimate]
    measured: tuple[str, ...]
    bytes_written: int = 0

    @property
    def middle_s(self) -> float:
        """The middle of the trial, in seconds since the epoch."""
        return self.started.timestamp() + self.seconds / 2

    @property
    def trial(self) -> Trial:
        """What a strategy is told."""
        return Trial(self.requested, self.status, self.figures)


@dataclass(frozen=True)
class RunRecord:
    """A run as stored, without its trials."""

    id: int
    uuid: str
    device: str
    fingerprint: str
    started: datetime
    ended: datetime | None
    state: str
    outcome: str
    problem: dict[str, Any]
    profile: dict[str, Any] | None
    trials: int


class Store:
    """Runs and trials in a database. All errors of the database are AutotuneErrors."""

    def __init__(self, state_dir: Path) -> None:
        self._where = state_dir / FILE_NAME
        try:
            state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._engine = create_engine(
                f"sqlite:///{self._where}", connect_args={"timeout": BUSY_TIMEOUT_S}
            )
            event.listen(self._engine, "connect", _configure)
            Base.metadata.create_all(self._engine)
            self._where.chmod(0o600)
        except (OSError, SQLAlchemyError) as error:
            raise self._failure(error) from None
        self._sessions = sessionmaker(self._engine, expire_on_commit=False)

    @classmethod
    def existing(cls, state_dir: Path) -> "Store | None":
        """The store of a state folder, or None if nothing has been stored there: looking must
        not make one."""
        return cls(state_dir) if (state_dir / FILE_NAME).exists() else None

    def _failure(self, error: Exception) -> AutotuneError:
        cause = getattr(error, "orig", None) or error
        return AutotuneError(
            f"The store {self._where} cannot be used ({cause}); free some space, mend the "
            "permissions, or choose another folder with --state-dir."
        )

    @contextmanager
    def _session(self) -> Iterator[Session]:
        try:
            with self._sessions.begin() as session:
                yield session
        except SQLAlchemyError as error:
            raise self._failure(error) from None

    def start_run(self, uuid: str, device: str, fingerprint: str, problem: dict[str, Any]) -> int:
        """A new run's number."""
        row = RunRow(
            uuid=uuid,
            device=device,
            fingerprint=fingerprint,
            started=datetime.now(UTC),
            state="running",
            problem=problem,
        )
        with self._session() as session:
            session.add(row)
        return row.id

    def update_problem(self, run: int, problem: dict[str, Any]) -> None:
        """Replace what is known of the run's problem (ceilings are resolved by the baseline)."""
        with self._session() as session:
            self._row(session, run).problem = problem

    def finish_run(
        self, run: int, state: str, outcome: str, profile: dict[str, Any] | None = None
    ) -> None:
        """Close a run: `state` is done, failed or interrupted."""
        with self._session() as session:
            row = self._row(session, run)
            row.state, row.outcome, row.profile = state, outcome, profile
            row.ended = datetime.now(UTC)

    def reopen_run(self, run: int) -> None:
        """A run that was cut goes on."""
        with self._session() as session:
            row = self._row(session, run)
            row.state, row.outcome, row.ended = "running", "", None

    def add_trial(self, run: int, record: TrialRecord) -> None:
        """Store a trial durably."""
        row = TrialRow(
            run_id=run,
            number=record.number,
            role=record.role,
            started=record.started,
            seconds=record.seconds,
            status=record.status.value,
            reason=record.reason,
            requested=dict(record.requested),
            effective=dict(record.effective),
            figures={n: [e.value, e.spread] for n, e in record.figures.items()},
            measured=list(record.measured),
            bytes_written=record.bytes_written,
        )
        with self._session() as session:
            session.add(row)

    def runs(self, uuid: str | None = None) -> list[RunRecord]:
        """All runs, or those of one array; the newest first."""
        query = select(RunRow).order_by(RunRow.id.desc())
        if uuid is not None:
            query = query.where(RunRow.uuid == uuid)
        with self._session() as session:
            return [_run_record(row) for row in session.scalars(query)]

    def run(self, run: int) -> RunRecord:
        """One run. Raise UsageError if there is none of this number."""
        with self._session() as session:
            return _run_record(self._row(session, run))

    def trials(self, run: int) -> list[TrialRecord]:
        """The trials of a run, in order. Raise UsageError if there is no such run."""
        with self._session() as session:
            return [_trial_record(row) for row in self._row(session, run).trials]

    def _row(self, session: Session, run: int) -> RunRow:
        row = session.get(RunRow, run)
        if row is None:
            raise UsageError(f"There is no run {run}; `autotune history` lists them.")
        return row


def _configure(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _utc(moment: datetime) -> datetime:
    """SQLite forgets the time zone; everything stored is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _run_record(row: RunRow) -> RunRecord:
    return RunRecord(
        row.id,
        row.uuid,
        row.device,
        row.fingerprint,
        _utc(row.started),
        _utc(row.ended) if row.ended else None,
        row.state,
        row.outcome,
        row.problem,
        row.profile,
        len(row.trials),
    )


def _trial_record(row: TrialRow) -> TrialRecord:
    return TrialRecord(
        row.number,
        row.role,
        _utc(row.started),
        row.seconds,
        Status(row.status),
        row.reason,
        row.requested,
        row.effective,
        {name: Estimate(*pair) for name, pair in row.figures.items()},
        tuple(row.measured),
        row.bytes_written,
    )
