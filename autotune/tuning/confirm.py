"""Whether what a search found is better: winner and original settings measured in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.knobs import Knob
from autotune.measure.workload import Phase
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting, show_setting
from autotune.problem.trial import Status
from autotune.results.pareto import as_said
from autotune.results.proof import original, proof_of
from autotune.stats.drift import neighbours
from autotune.stats.sequential import (
    LEAST_PAIRS,
    MOST_PAIRS,
    Held,
    Look,
    ProofTerms,
    Step,
    ceilings_held,
    look,
    order,
    spending,
)
from autotune.stats.verdict import ERROR, Verdict, judge
from autotune.tuning.long_load import (
    LongLoad,
    is_time_for_long,
    long_phases,
    long_seconds,
    may_write,
    measure_long,
)
from autotune.tuning.preparation import Preparation
from autotune.tuning.relevance import differing
from autotune.tuning.remaining import pairs_left
from autotune.tuning.reporter import Reporter
from autotune.tuning.time_left import NextProof
from autotune.tuning.trials import Trials


@dataclass(frozen=True)
class Decision:
    """Whether to keep the winner and why; both sides' figures, as measured in turn. `held`: what
    is known of each ceiling, by figure. `pairs`: how often both sides were measured."""

    keep: bool
    reason: str
    verdict: Verdict | None
    before: Figures
    after: Figures
    held: Mapping[str, Held] = field(default_factory=dict)
    pairs: int = 0
    long: LongLoad = field(default_factory=LongLoad)

    def mended(self, figures: Sequence[Figure]) -> list[Figure]:
        """Those whose ceiling in ms the original settings break, and the winner holds."""
        broken = broken_ceilings(figures, self.before, self.before)
        return [figure for figure in broken if self.held.get(figure.name) is Held.HOLDS]


def confirm(
    preparation: Preparation,
    trials: Trials,
    winner: Setting,
    figures: list[Figure],
    reporter: Reporter,
    error: float = ERROR,
    what: str = "the best combination found",
    others: bool = False,
) -> Decision:
    """Measure the winner and the baseline in turn, in the phases where they can differ at all,
    until it is clear which is better or is not worth going on.

    A winner of a search is kept if it is better, one that was given if it is no worse. Equal
    settings are called different at most as often as `error`. `what`: the winner, in words.
    `others`: whether more proofs may follow this one.
    """
    given = preparation.options.given is not None
    what = "the profile" if given else what
    shown = show_setting(winner, preparation.baseline)
    reporter.step(f"Measuring in turn with the original settings: {shown}")
    phases = differing(preparation.knobs, preparation.phases, winner, preparation.baseline)
    if given and not any(phase.weight for phase in phases):
        reason = "nothing that counts in the workload can differ, so nothing can be shown"
        return Decision(False, reason, None, {}, {})
    asked = frozenset(ceiling.phase for ceiling in preparation.options.ceilings)
    terms = ProofTerms(figures, what, asked, given)
    proof = _Proof(preparation, trials, winner, phases, figures, terms)
    long_s = 0.0
    if given:
        planned, errors = LEAST_PAIRS, {LEAST_PAIRS: ERROR}
    else:
        # Decided on before anything is seen.
        long_s = long_seconds(preparation, winner, phases)
        names = [phase.name for phase in phases]
        # A long load that counts has to be measured, after however few pairs.
        least = 1 if preparation.options.workload.counts == "long" else LEAST_PAIRS
        left = pairs_left(trials, names, long_s)
        left = left if left >= least else pairs_left(trials, names)
        planned = max(1, min(MOST_PAIRS, left))
        errors = dict(enumerate(spending(planned, error), 1))
    after = len(trials.records)
    trials.progress.proof = NextProof(phases, long_s, after=after, others=others)
    for pair in range(planned):
        failed = proof.measure(pair)
        if failed is not None:
            return failed
        if pair + 1 not in errors:
            continue
        decision, seen = proof.look(planned, errors[pair + 1])
        if seen.step is not Step.MORE:
            break
        if pairs_left(trials, [p.name for p in phases]) < 1:
            decision, seen = proof.look(pair + 1, errors[pair + 1])
            break
        reporter.step(f"Measuring another pair: {seen.reason}")
    if decision.keep and not given:
        return _with_long_load(*(preparation, trials, winner, phases), figures, decision, reporter)
    return decision


class _Proof:
    """The measurements in turn, and what they say so far."""

    def __init__(
        self,
        preparation: Preparation,
        trials: Trials,
        winner: Setting,
        phases: tuple[Phase, ...],
        figures: list[Figure],
        terms: ProofTerms,
    ) -> None:
        self._trials, self._phases, self._figures, self._terms = trials, phases, figures, terms
        self._settings = {"winner": winner, "baseline": preparation.baseline}
        self._sides: dict[str, list[Figures]] = {"winner": [], "baseline": []}
        self._past = [anchor.figures for anchor in neighbours(trials.anchors)]
        self._known = _known(preparation.knobs, trials, winner, phases)

    def measure(self, pair: int) -> Decision | None:
        """Another pair; a decision if the winner cannot be applied."""
        for side in order(pair):
            record = self._trials.run(f"confirm-{side}", self._settings[side], self._phases)
            if record.status is not Status.COMPLETE:
                what = self._terms.what if side == "winner" else self._terms.compared_with
                reason = f"{what} did not apply: {record.reason.rstrip('.')}"
                return Decision(False, reason, None, {}, {})
            self._sides[side].append(record.figures)
        return None

    def look(self, planned: int, error: float) -> tuple[Decision, Look]:
        """What the pairs so far say."""
        winner, baseline = self._sides["winner"], self._sides["baseline"]
        verdict = judge(self._figures, winner, baseline, self._past, self._known, error)
        records, setting = self._trials.records, self._settings["winner"]
        proof = proof_of(records, setting)
        assert proof is not None
        before = original(records, setting)
        after = as_said(proof.after, before, proof.before)
        pairs = len(winner)
        decision = Decision(False, "", verdict, before, after, pairs=pairs)
        names = {phase.name for phase in self._phases}
        unknown = [
            f.name
            for f in self._figures
            if f.phase in names
            and (f.weight > 0 or f.limited)
            and not (f.name in after and f.name in before and f.name in verdict.figures)
        ]
        if unknown:
            reason = f"{unknown[0]} could not be measured on both sides, so nothing is claimed"
            return replace(decision, reason=reason), Look(Step.DROP, reason)
        # Ceilings are judged by the values of these minutes, whatever the array was before.
        now = {**before, **proof.before}
        seen = look(self._terms, verdict, now, proof.after, pairs, planned)
        held = ceilings_held(self._figures, verdict.figures, now, proof.after)
        keep = seen.step is Step.KEEP
        return replace(decision, keep=keep, reason=seen.reason, held=held), seen


def _known(
    knobs: Sequence[Knob], trials: Trials, winner: Setting, phases: Sequence[Phase]
) -> list[Figures]:
    """What the trials so far showed of the winner's values, phase by phase."""
    known: list[Figures] = []
    for record in trials.records:
        if record.status is not Status.COMPLETE or record.role == "baseline":
            continue
        same = {
            phase.name
            for phase in phases
            if phase.name in record.measured
            and phase not in differing(knobs, [phase], record.requested, winner)
        }
        if same:
            known.append({n: e for n, e in record.figures.items() if n.partition(".")[0] in same})
    return known


def _with_long_load(
    preparation: Preparation,
    trials: Trials,
    winner: Setting,
    phases: Sequence[Phase],
    figures: Sequence[Figure],
    decision: Decision,
    reporter: Reporter,
) -> Decision:
    """The decision with what a load of a minute shows; not to keep what is worse then, but for
    what holds a ceiling that the original settings break: that is kept at whatever speed."""
    assert decision.verdict is not None
    wanted = long_phases(preparation, winner, phases)
    if not wanted:
        return replace(decision, long=LongLoad(left_out=_why_no_long(preparation, winner, phases)))
    if not is_time_for_long(trials, wanted):
        long = LongLoad(left_out="there was no time left for it (--time)")
    elif not may_write(trials, wanted):
        long = LongLoad(left_out="the write budget does not allow it (--write-budget)")
    else:
        reporter.step("Measuring a long load with both, in turn")
        long = measure_long(preparation, trials, winner, wanted)
    if decision.mended(figures) and Held.BROKEN not in decision.held.values():
        return replace(decision, long=long)
    counts = preparation.options.workload.counts == "long"
    if counts and not long.figures:
        reason = f"the workload counts long loads, and {long.left_out or 'it gave no figure'}"
        return replace(decision, keep=False, reason=reason, long=long)
    slower = long.slower()
    if slower:
        name, ratio = slower
        reason = (
            f"faster in the first seconds, but after {long.seconds:.0f} s of load "
            f"{name} is ×{ratio:.2f}"
        )
        return replace(decision, keep=False, reason=reason, long=long)
    if counts:
        overall = long.overall(decision.verdict, preparation.figures)
        if overall.low <= 1.0:
            reason = "a long load, which counts in this workload, shows no difference beyond noise"
            return replace(decision, keep=False, reason=reason, long=long)
    return replace(decision, long=long)


def _why_no_long(preparation: Preparation, winner: Setting, phases: Sequence[Phase]) -> str:
    """Why no long load was measured where the growing cache might matter; empty if it cannot."""
    if long_phases(preparation, winner, phases, anyway=True):
        return f"the workload {preparation.options.workload.name} leaves it out"
    return ""
