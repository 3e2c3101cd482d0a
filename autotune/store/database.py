"""The only module that talks to the database."""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from autotune.errors import UsageError
from autotune.problem.course import Course
from autotune.store import sqlite
from autotune.store.models import RunRow, TrialRow, run_record, trial_record
from autotune.store.opening import FILE_NAME, bring_up_to_date
from autotune.store.records import RunRecord, TrialRecord
from autotune.untrusted import NONSENSE

WHOLE, RUNS = 50, 1000
"""What is kept of an array by `thin`: so many runs with their trials, so many at all."""


class Store:
    """Runs and trials in a database. All errors of the database are AutotuneErrors."""

    def __init__(self, state_dir: Path) -> None:
        """Open the store of a state folder, made or brought up to date if need be.

        Raise RefusalError, nothing being changed, if a newer autotune made it.
        """
        self._where = state_dir / FILE_NAME
        try:
            bring_up_to_date(self._where)
        except (*sqlite.DRIVER_ERRORS, SQLAlchemyError) as error:
            raise sqlite.failure(self._where, error) from None
        engine = sqlite.engine(self._where)
        self._sessions = sessionmaker(engine, expire_on_commit=False)
        # Its connection would stay open (Python 3.13 warns of that).
        weakref.finalize(self, engine.dispose)

    @classmethod
    def existing(cls, state_dir: Path) -> "Store | None":
        """The store of a state folder, or None if nothing has been stored there: looking must
        not make one."""
        if state_dir.exists() and not state_dir.is_dir():
            raise UsageError(
                f"{state_dir} is not a folder; name the one of the runs (--state-dir)."
            )
        return cls(state_dir) if (state_dir / FILE_NAME).exists() else None

    @contextmanager
    def _session(self) -> Iterator[Session]:
        try:
            with self._sessions.begin() as session:
                yield session
        except (SQLAlchemyError, *NONSENSE) as error:
            raise sqlite.failure(self._where, error) from None

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
        self,
        run: int,
        state: str,
        outcome: str,
        profile: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
    ) -> None:
        """Close a run: `state` is done, failed or interrupted; `result` is what it said."""
        with self._session() as session:
            row = self._row(session, run)
            row.state, row.outcome, row.profile = state, outcome, profile
            row.result = result
            row.ended = datetime.now(UTC)

    def reopen_run(self, run: int) -> None:
        """A run that was cut goes on."""
        with self._session() as session:
            row = self._row(session, run)
            row.state, row.outcome, row.ended = "running", "", None

    def add_trial(
        self, run: int, record: TrialRecord, courses: Mapping[str, Course] | None = None
    ) -> None:
        """Store a trial durably; `courses` by phase."""
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
            courses={name: each.document() for name, each in (courses or {}).items()},
        )
        with self._session() as session:
            session.add(row)

    def runs(self, uuid: str | None = None) -> list[RunRecord]:
        """All runs, or those of one array; the newest first."""
        query = select(RunRow).order_by(RunRow.id.desc())
        if uuid is not None:
            query = query.where(RunRow.uuid == uuid)
        with self._session() as session:
            return [run_record(row) for row in session.scalars(query)]

    def run(self, run: int) -> RunRecord:
        """One run. Raise UsageError if there is none of this number."""
        with self._session() as session:
            row = self._row(session, run)
            return replace(run_record(row), said=row.result)

    def trials(self, run: int) -> list[TrialRecord]:
        """The trials of a run, in order. Raise UsageError if there is no such run."""
        with self._session() as session:
            return [trial_record(row) for row in self._row(session, run).trials]

    def courses(self, run: int) -> dict[int, dict[str, Course]]:
        """What phases showed second by second, by trial and phase; only of trials that have it."""
        with self._session() as session:
            return {
                row.number: {name: Course.read(each) for name, each in row.courses.items()}
                for row in self._row(session, run).trials
                if row.courses
            }

    def result(self, run: int) -> dict[str, Any] | None:
        """What a run said at its end; None if it came to none, or an older version ran it."""
        with self._session() as session:
            return self._row(session, run).result

    def thin(self, uuid: str, whole: int = WHOLE, runs: int = RUNS) -> None:
        """Forget the trials of all but an array's newest runs, and its oldest runs altogether.
        A run that was cut can still be resumed if it is among the `whole` ones."""
        ids = [record.id for record in self.runs(uuid)]
        with self._session() as session:
            session.execute(delete(TrialRow).where(TrialRow.run_id.in_(ids[whole:])))
            session.execute(delete(RunRow).where(RunRow.id.in_(ids[runs:])))

    def _row(self, session: Session, run: int) -> RunRow:
        row = session.get(RunRow, run)
        if row is None:
            raise UsageError(f"There is no run {run}; `autotune history` lists them.")
        return row
