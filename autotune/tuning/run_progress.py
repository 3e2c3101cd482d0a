"""What a run's reporter is told: which trial is under way, how long the run still takes, and what
each trial showed."""

import time
from collections.abc import Mapping, Sequence

from autotune.measure.workload import Phase
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, gain, limits
from autotune.results.proof import BASELINE, WINNER
from autotune.store import TrialRecord
from autotune.tuning.preparation import Preparation
from autotune.tuning.reporter import Reporter
from autotune.tuning.time_left import NextProof, expected_left_s, movable, plan_of

ENDING_S = 6.0
"""After the last trial the originals go back, and the answers are reckoned (in the lab, 6.5 s)."""


class RunProgress:
    """Tells a reporter. `label`: what is measured now; `proof`: the proof that is expected."""

    def __init__(self, preparation: Preparation, reporter: Reporter, deadline: float) -> None:
        self._prep, self._reporter = preparation, reporter
        self._ends_at = deadline
        self.label = ""
        self.proof = NextProof(movable(preparation))

    def look_ahead(
        self,
        seconds: Mapping[str, float],
        records: Sequence[TrialRecord],
        deadline: float,
        role: str,
        baseline_every: int,
    ) -> None:
        """Reckon when the run will end: `seconds` are what each phase takes, `deadline` is on the
        monotonic clock, `role` is that of the trial that begins now; the baseline comes back
        after so many trials."""
        plan = plan_of(self._prep, seconds, self.proof, role, baseline_every)
        now = time.monotonic()
        self._ends_at = now + expected_left_s(plan, records, deadline - now) + ENDING_S

    def phase(self, phase: Phase, share: float) -> None:
        """A phase is so far."""
        left = max(0.0, self._ends_at - time.monotonic())
        self._reporter.progress(f"{self.label}: {phase.name}", share, left)

    def ceilings(self, figures: Sequence[Figure], before: Figures) -> None:
        """The ceilings from now on, beside what the original settings show."""
        self._reporter.ceilings(limits(figures, before))

    def trial(self, record: TrialRecord, first: TrialRecord) -> None:
        """A trial has ended; `first` is that of the original settings."""
        before, shown = first.figures, record.figures
        if record.role in (WINNER, BASELINE):
            # It measured what its setting can move.
            shown = {**before, **shown}
        self._reporter.trial(record, gain(self._prep.figures, shown, before))
