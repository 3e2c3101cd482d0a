"""The search of a run: what is tried, when the baseline comes back, and why it ends."""

import dataclasses
from collections.abc import Callable, Sequence

from autotune.problem.ceilings import LEAST_SLACK
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import KnobShare, Problem, Strategy, StrategyFactory
from autotune.results.best_seen import LOOKS_BETTER, best_seen
from autotune.results.pareto import Point, points
from autotune.results.proof import fresh, proofs
from autotune.stats.drift import is_moving
from autotune.stats.sequential import ERRORS, LEAST_PAIRS
from autotune.stats.verdict import Conclusion, Verdict
from autotune.tuning.better_part import better_part, looks_better, needed_part
from autotune.tuning.confirm import Decision
from autotune.tuning.long_load import GROWS, long_seconds, reserved_seconds
from autotune.tuning.preparation import Preparation
from autotune.tuning.relevance import differing, figures_moved
from autotune.tuning.remaining import Stop, lacking, proof_seconds
from autotune.tuning.stored_problem import stored_problem
from autotune.tuning.strategy_input import informed, trials_without_drift, without
from autotune.tuning.time_left import NextProof, movable
from autotune.tuning.trials import Trials

SHORT = 1
"""The pairs for which time is kept where nothing looks better yet."""
PATIENCE = 0.5
"""When this part of the trials is used and none held a ceiling that the array breaks as it is, the
rest looks for what is better without making it worse."""


class Search:
    """The strategy with all that it was told. `problem` is as it stands now, with what was
    proven to be no answer taken out; `relaxed` are the figures whose ceilings were given up
    because the array breaks them as it is and nothing tried held them."""

    def __init__(
        self,
        preparation: Preparation,
        trials: Trials,
        factory: StrategyFactory,
        problem: Problem,
        before: Figures,
    ) -> None:
        self._prep, self._trials, self._factory = preparation, trials, factory
        self._before = before
        self.problem = problem
        self.strategy: Strategy = informed(factory, problem, trials)
        self.stopped = Stop()
        self.errors = _errors_left(trials)
        """The share of each proof that may still be made in calling equal settings different."""
        self.proofs_left = len(self.errors)
        self.relaxed: list[Figure] = []
        self.verdicts: dict[object, Verdict] = {}
        """What the proof of a setting showed, by its key."""
        self._needs_no_proof: set[object] = {setting_key(preparation.baseline)}
        self._stored = stored_problem(preparation, problem.figures)

    @property
    def figures(self) -> list[Figure]:
        return list(self.problem.figures)

    def search(self) -> None:
        """Try what the strategy asks for, until that or a budget ends it."""
        trials, prep = self._trials, self._prep
        while True:
            lack = self.lacking()
            if not lack and _since_baseline(trials) >= trials.baseline_every:
                trials.run("baseline", prep.baseline, prep.phases)
                self._inform()
                lack = self.lacking()
            if trials.count("search") >= self.problem.trials:
                tried = trials.count("search")
                text = f"it tried as many combinations as it was allowed, {tried} (--trials)"
                self.stopped = Stop(text, "trials")
                break
            if lack:
                self.stopped = lack
                break
            if self._half_is_used():
                self.relax()
            setting = self.strategy.ask()
            if setting is None and self.relax():
                setting = self.strategy.ask()
            if setting is None:
                self.stopped = Stop("no other combination promises enough to be worth a trial")
                break
            self.try_setting(setting)
        if _since_baseline(trials) and is_moving(trials.anchors) and not self.lacking():
            # Else the last trials would be taken for what they were under the drift.
            trials.run("baseline", prep.baseline, prep.phases)
            self._inform()

    def try_setting(self, setting: Setting, role: str = "search") -> None:
        record = self._trials.run(role, setting, self._prep.phases, reuse=True)
        self.strategy.tell(record.trial)

    def lacking(self) -> Stop:
        """What is missing for another trial and a proof."""
        seen = self._best_seen()
        others = self.proofs_left > 1
        if seen is None:
            kept_s = proof_seconds(self._trials, movable(self._prep), SHORT)
            self._trials.progress.proof = NextProof((), kept_s=kept_s, others=others)
            return lacking(self._prep, self._trials, SHORT)
        prep = self._prep
        phases = differing(prep.knobs, prep.phases, seen.setting, prep.baseline)
        long_s = reserved_seconds(prep, seen.setting, phases)
        kept_s = proof_seconds(self._trials, phases, LEAST_PAIRS) + long_s
        likely = self.what_matters(seen.setting)[0]
        likely = seen.setting if self.is_baseline(likely) else likely
        proven = differing(prep.knobs, prep.phases, likely, prep.baseline)
        expected_s = long_seconds(prep, likely, proven)
        self._trials.progress.proof = NextProof(proven, expected_s, kept_s, others=others)
        return lacking(prep, self._trials, LEAST_PAIRS, long_s, phases)

    def better_part(self, setting: Setting, decision: Decision) -> Setting | None:
        """What is left to prove of a setting whose proof failed; None if nothing is."""
        prep, verdict = self._prep, decision.verdict
        if verdict is None:
            return None
        part: Setting | None
        if decision.long.slower():
            # The short loads speak for the cache that the long one speaks against.
            part = {**setting, GROWS: prep.baseline[GROWS]}
        else:
            moves = {knob.name: figures_moved(knob, prep.phases) for knob in prep.knobs}
            part = better_part(moves, self.figures, setting, prep.baseline, verdict)
        is_out = part is None or self.needs_no_proof(part) or not prep.allowed(part)
        return None if is_out else part

    def needed_part(
        self, setting: Setting, decision: Decision, shares: Sequence[KnobShare]
    ) -> Setting | None:
        """What was proven, without the changes that were not shown to bring anything, in short
        loads, long ones, or under a ceiling in ms; None if there are none."""
        prep = self._prep
        moves = {knob.name: figures_moved(knob, prep.phases) for knob in prep.knobs}
        assert decision.verdict is not None
        shown = (*decision.verdict.figures.items(), *decision.long.figures.items())
        better = {name for name, c in shown if c.conclusion is Conclusion.BETTER}
        counting = {figure.name for figure in self.figures if figure.weight > 0}
        probable = {name for name, c in shown if name in counting and looks_better(c)}
        better |= {
            figure.name
            for figure in broken_ceilings(self.figures, decision.before, decision.before)
        }
        part = needed_part(moves, setting, prep.baseline, better, probable, shares)
        is_out = part is None or self.needs_no_proof(part) or not prep.allowed(part)
        return None if is_out else part

    def best(self) -> Setting | None:
        """What is most worth to be proven: what the strategy says, else what looked best in a
        trial; None if nothing looked better than the baseline, or than what was proven."""
        recommended, proven = self.strategy.recommend(), self.problem.proven
        if setting_key(recommended.setting) not in self._needs_no_proof and (
            proven is None or recommended.gain.value >= LOOKS_BETTER * proven
        ):
            return recommended.setting
        seen = self._best_seen()
        if seen is None or (proven is not None and seen.gain.value < LOOKS_BETTER * proven):
            return None
        return seen.setting

    def is_baseline(self, setting: Setting) -> bool:
        return setting_key(setting) == setting_key(self._prep.baseline)

    def needs_no_proof(self, setting: Setting) -> bool:
        return setting_key(setting) in self._needs_no_proof

    def looked_better(self, setting: Setting) -> bool:
        """Whether trials showed just this setting to be better, beyond their spread."""
        key = setting_key(setting)
        seen = self._best_seen(lambda other: setting_key(other) == key)
        return seen is not None

    def what_matters(
        self, setting: Setting, doubtful: bool = False
    ) -> tuple[Setting, tuple[KnobShare, ...], float]:
        """The setting without the changes that nothing shows to bring anything, what each change
        brings, and the expected loss. With `doubtful`, what only probably brings something
        stays."""
        told = list(trials_without_drift(self._trials))
        weighed = self.strategy.weigh(told, setting, doubtful)
        back = {share.knob: share.before for share in weighed.shares if not share.needed}
        return {**setting, **back}, weighed.shares, weighed.loss

    def take_out(
        self, setting: Setting, verdict: Verdict | None = None, kept: bool = False
    ) -> None:
        """This one needs no (other) proof; once one is `kept`, only what promises more does."""
        self._needs_no_proof.add(setting_key(setting))
        if verdict is not None:
            self.verdicts[setting_key(setting)] = verdict
        self.problem = without(self.problem, setting)
        if verdict is not None and kept:
            proven = max(self.problem.proven or 0.0, verdict.overall.ratio)
            self.problem = dataclasses.replace(self.problem, proven=proven)
        self._inform()

    def relax(self) -> list[Figure]:
        """Ask no more than the array as it is shows, where it breaks its ceilings and nothing
        tried holds them. Return those figures; none if there is nothing (more) to relax."""
        if self.relaxed:
            return []
        broken = unreached(self.figures, self._before, self._trials, self._prep.baseline)
        if not broken:
            return []
        self.relaxed = broken
        names = {figure.name for figure in broken}
        figures = tuple(
            dataclasses.replace(f, ceiling=None, ratio=LEAST_SLACK) if f.name in names else f
            for f in self.problem.figures
        )
        self.problem = dataclasses.replace(self.problem, figures=figures)
        self._trials.set_ceilings(figures, self._before)
        self._inform()
        return broken

    def points(self) -> list[Point]:
        """Each setting that was measured in full, the baseline's first."""
        return points(self._stored, self.figures, self._trials.records, None)

    def _best_seen(self, among: Callable[[Setting], bool] = lambda _setting: True) -> Point | None:
        def allowed(setting: Setting) -> bool:
            return among(setting) and self._prep.allowed(setting)

        records = self._trials.records
        return best_seen(self._stored, self.figures, records, allowed, self._needs_no_proof)

    def _half_is_used(self) -> bool:
        return self._trials.count("search") >= PATIENCE * self.problem.trials

    def _inform(self) -> None:
        self.strategy = informed(self._factory, self.problem, self._trials)


def _errors_left(trials: Trials) -> tuple[float, ...]:
    """What the proofs that a run made before it was cut have left; one more is always possible."""
    made = len(proofs(trials.records))
    return ERRORS[made:] or ERRORS[-1:]


def unreached(
    figures: Sequence[Figure], before: Figures, trials: Trials, baseline: Setting
) -> list[Figure]:
    """The figures whose ceiling in ms the original settings break and no other ones held."""
    shown = [fresh(record) for record in trials.records if record.requested != baseline]
    return [
        figure
        for figure in broken_ceilings(figures, before, before)
        if not any(
            figure.name in each and each[figure.name].value <= (figure.ceiling or 0.0)
            for each in shown
        )
    ]


def _since_baseline(trials: Trials) -> int:
    """The trials of the search since the baseline was measured."""
    roles = [record.role for record in trials.records]
    last = max((i for i, role in enumerate(roles) if role == "baseline"), default=0)
    return roles[last:].count("search")
