"""What of a search is proven: the most promising first, then what may be better still."""

import math
from dataclasses import dataclass, replace

from autotune.errors import SyncEndedError
from autotune.problem.setting import Setting
from autotune.problem.strategy import KnobShare
from autotune.stats.sequential import LEAST_PAIRS, Held
from autotune.stats.verdict import Conclusion, Verdict
from autotune.tuning.confirm import Decision, confirm
from autotune.tuning.long_load import long_seconds
from autotune.tuning.preparation import DOUBTS, Preparation
from autotune.tuning.relevance import differing
from autotune.tuning.remaining import pairs_left
from autotune.tuning.reporter import Reporter
from autotune.tuning.search import Search
from autotune.tuning.trials import Trials

CANDIDATES = 3
"""How many settings are looked at for one that is worth a proof."""
WORTH_A_TRIAL = math.log(1.02)
"""An expected loss by which a trial without the doubtful changes is worth its time."""
Candidate = tuple[Setting, tuple[KnobShare, ...]]
"""A setting to prove, and what each change brings, by the models."""


@dataclass(frozen=True)
class Proven:
    """What is kept, or else what was proven last; `decision` is None if nothing was worth a proof.
    `others`: what else was proven, in order."""

    winner: Setting
    decision: Decision | None = None
    shares: tuple[KnobShare, ...] = ()
    others: tuple[tuple[Setting, Decision], ...] = ()

    @property
    def kept(self) -> Verdict | None:
        """What the proof of the setting that is kept showed; None if none is."""
        return self.decision.verdict if self.decision and self.decision.keep else None

    def better_of(self, other: "Proven") -> "Proven":
        """The better of this and what was proven after it, with the other among its `others`."""
        if self.decision is None:
            return other
        assert other.decision is not None
        is_other = self.kept is None or (other.kept is not None and other._rank > self._rank)
        better, lesser = (other, self) if is_other else (self, other)
        broken = [name for name in lesser.broken if name not in better.broken]
        why = f"{broken[0]} stays above its ceiling then" if broken else "by less"
        return better._with_lesser(lesser, why)

    @property
    def broken(self) -> list[str]:
        """The figures whose ceiling it does not hold, whether it moves them or not."""
        held = self.decision.held if self.decision else {}
        return [name for name, state in held.items() if state is Held.BROKEN]

    @property
    def _rank(self) -> tuple[int, float]:
        """A ceiling is a condition, so it goes before the gain."""
        assert self.kept is not None
        return -len(self.broken), self.kept.overall.ratio

    def reduced_to(self, smaller: "Proven") -> "Proven":
        """The same with fewer changes, if that was proven, too, unless the others surely brought
        something all together."""
        assert self.kept is not None
        if smaller.kept is None or self.kept.overall.low > smaller.kept.overall.ratio:
            return self._with_lesser(smaller, "by less")
        return smaller._with_lesser(self, "its other changes were not shown to bring anything")

    def _with_lesser(self, lesser: "Proven", why: str) -> "Proven":
        assert lesser.decision is not None
        told = lesser.winner, _lesser(lesser.decision, why)
        earlier = self.others if self.others else lesser.others
        return replace(self, others=(*earlier, told))


def _lesser(decision: Decision, why: str) -> Decision:
    """What is not kept after all, since another was shown to bring more."""
    if not decision.keep or decision.verdict is None:
        return decision
    shown = decision.verdict.overall
    span = f"{shown.low:.2f} to {shown.high:.2f}"
    is_better = shown.conclusion is Conclusion.BETTER
    too = "is better" if is_better else "holds the ceilings"
    reason = f"it {too} too, but {why}: ×{shown.ratio:.2f} ({span})"
    return replace(decision, keep=False, reason=reason)


def prove(preparation: Preparation, trials: Trials, search: Search, reporter: Reporter) -> Proven:
    """Confirm what is most worth it; while there is time, the next best if that fails. If it is
    kept, the same without the changes that were not shown to bring anything, and what promises
    more."""
    found = Proven(preparation.baseline)
    part: Setting | None = None
    reduces = False
    # Else a setting that is faster would fail its proof for a ceiling that nothing meets.
    search.relax()
    for error in search.errors:
        try:
            candidate = _whole(search, part) if part is not None else _candidate(search, reporter)
            if candidate is None:
                break
            if found.decision is not None and not _is_time(preparation, trials, found, candidate):
                break
            if found.kept and _breaks_again(preparation, search, found, candidate):
                break
            winner, shares = candidate
            search.proofs_left -= 1
            if found.kept:
                more = "the same with fewer changes" if reduces else "what promised more"
                reporter.step(f"There is time to prove {more}")
            decision = confirm(
                *(preparation, trials, winner, search.figures, reporter, error),
                _name(found, reduces),
                others=search.proofs_left > 0,
            )
        except SyncEndedError:
            if found.kept is None:
                raise
            # What was proven before that stands.
            break
        proven = Proven(winner, decision, shares)
        found = found.reduced_to(proven) if reduces else found.better_of(proven)
        search.take_out(winner, decision.verdict, kept=decision.keep)
        if proven.kept:
            own = found.winner is winner and not reduces
            part = search.needed_part(winner, decision, shares) if own else None
            reduces = part is not None
            continue
        reduces = False
        reporter.step(f"Not kept: {decision.reason}")
        part = None if found.kept else search.better_part(winner, decision)
        # What is found after the last proof could not be proven.
        may_go_on = part is None and found.kept is None and search.proofs_left > 0
        if may_go_on and not search.lacking():
            search.search()
    return found


def _name(found: Proven, reduces: bool) -> str:
    """What the next candidate is called."""
    if found.decision is None:
        return "the best combination found"
    if reduces:
        return "the combination with fewer changes"
    return "the combination that promised more" if found.kept else "the next best combination"


def _is_time(preparation: Preparation, trials: Trials, found: Proven, candidate: Candidate) -> bool:
    """Whether there is time for another proof. After what is kept, one pair would not do: where no
    more are planned, a single one is enough to keep."""
    phases = differing(preparation.knobs, preparation.phases, candidate[0], preparation.baseline)
    long_s = long_seconds(preparation, candidate[0], phases) if found.kept else 0.0
    least = LEAST_PAIRS if found.kept else 1
    return pairs_left(trials, [phase.name for phase in phases], long_s) >= least


def _breaks_again(
    preparation: Preparation, search: Search, found: Proven, candidate: Candidate
) -> bool:
    """Whether what is kept holds a ceiling that the original settings break, and the candidate
    does not even move that figure: it could not take its place."""
    assert found.decision is not None
    moved = differing(preparation.knobs, preparation.phases, candidate[0], preparation.baseline)
    phases = {phase.name for phase in moved}
    return any(figure.phase not in phases for figure in found.decision.mended(search.figures))


def _whole(search: Search, part: Setting) -> Candidate:
    """What is left of a setting that was proven: all of it stays."""
    return part, tuple(replace(share, needed=True) for share in search.what_matters(part)[1])


def _candidate(search: Search, reporter: Reporter) -> Candidate | None:
    """What to prove next, without the changes that nothing speaks for; None if there is nothing."""
    tests = 0
    for _ in range(CANDIDATES + DOUBTS):
        best = search.best()
        if best is None:
            if search.relax():
                continue
            return None
        smaller, shares, loss = search.what_matters(best)
        doubtful = loss > WORTH_A_TRIAL and not search.is_baseline(smaller)
        if doubtful and tests < DOUBTS and not search.lacking():
            # Whether it goes without them is better known than guessed.
            reporter.step("Testing whether each change of the best is needed")
            search.try_setting(best if tests % 2 else smaller, "check")
            tests += 1
            continue
        if loss > WORTH_A_TRIAL:
            smaller, shares, _ = search.what_matters(best, doubtful=True)
        if not search.needs_no_proof(smaller):
            return smaller, shares
        if search.is_baseline(smaller) and search.looked_better(best):
            # Nothing of it is sure by itself, but all of it together was seen to be better.
            return best, ()
        search.take_out(best)
    return None
