"""What a run's reporter is told: which trial is under way, how long the run still takes, and what
each trial showed."""

import time
from collections.abc import Mapping, Sequence

from autotune.measure.workload import Phase
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, gain, limits
from autotune.results.proof import PROOF_ROLES
from autotune.store import TrialRecord
from autotune.tuning.preparation import Preparation
from autotune.tuning.reporter import Reporter
from autotune.tuning.time_left import NextProof, TimeLeft, movable, plan_of, time_left

ENDING_S = 6.0
"""After the last trial the originals go back, and the answers are reckoned (in the lab, 6.5 s)."""


class RunProgress:
    """Tells a reporter. `label`: what is measured now; `proof`: the proof that is expected."""

    def __init__(self, preparation: Preparation, reporter: Reporter) -> None:
        self._prep, self._reporter = preparation, reporter
        self._left, self._reckoned = TimeLeft(0.0, 0.0), time.monotonic()
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
        self._reckoned = time.monotonic()
        self._left = time_left(plan, records, deadline - self._reckoned)

    def phase(self, phase: Phase, share: float) -> None:
        """A phase is so far."""
        passed_s = time.monotonic() - self._reckoned
        told = (self._left.least_s, self._left.most_s)
        least_s, most_s = (max(0.0, left_s + ENDING_S - passed_s) for left_s in told)
        self._reporter.progress(f"{self.label}: {phase.name}", share, least_s, most_s)

    def ceilings(self, figures: Sequence[Figure], before: Figures) -> None:
        """The ceilings from now on, beside what the original settings show."""
        self._reporter.ceilings(limits(figures, before))

    def trial(self, record: TrialRecord, first: TrialRecord) -> None:
        """A trial has ended; `first` is that of the original settings."""
        before, shown = first.figures, record.figures
        if record.role in PROOF_ROLES:
            # It measured what its setting can move.
            shown = {**before, **shown}
        self._reporter.trial(record, gain(self._prep.figures, shown, before))
