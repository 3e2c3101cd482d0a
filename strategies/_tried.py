"""Which settings were told of, and what may still be done with each."""

from autotune.problem.trial import Status, Trial
from autotune.strategies._lattice import Lattice, Row


class Tried:
    """The trials of a run, by setting. `trials`: how many, with the baseline's."""

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        self.trials = 0
        self.searched = 0
        """Trials of other settings than the baseline."""
        self.tried: dict[Row, bool] = {}
        """What gave figures, and whether a trial of it ran to its end."""
        self._refused: set[Row] = set()
        self._failed: set[Row] = set()

    def add(self, trial: Trial) -> None:
        row = self._lattice.row(trial.setting)
        self.trials += 1
        self.searched += row != self._lattice.baseline
        if row is None:
            return
        if trial.status == Status.INFEASIBLE:
            self._refused.add(row)
        elif trial.status == Status.FAILED:
            # Once is chance; a setting whose measurement breaks twice is left alone.
            (self._refused if row in self._failed else self._failed).add(row)
        else:
            ended = trial.status == Status.COMPLETE
            self.tried[row] = ended or self.tried.get(row, False)

    def untried(self, rows: list[Row]) -> list[Row]:
        """Those of the rows that no figures are known of, without what was refused."""
        spent = {*self._refused, *self.tried, self._lattice.baseline}
        return [row for row in rows if row not in spent]

    def usable(self) -> list[Row]:
        """What may be recommended in the baseline's place: ran to its end, is allowed, and was
        taken by the kernel."""
        return [
            row
            for row, ended in self.tried.items()
            if ended
            and row not in self._refused
            and row != self._lattice.baseline
            and self._lattice.allows(row)
        ]
