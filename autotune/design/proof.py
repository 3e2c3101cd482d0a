"""The proof of a design: the finalists and the default, measured in turn."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from autotune.design.shape import Shape
from autotune.design.trials import PROOF, Trials
from autotune.errors import MeasurementError
from autotune.problem.objective import Figures
from autotune.problem.trial import Status
from autotune.results.proof import mean
from autotune.stats.drift import neighbours
from autotune.stats.sequential import (
    ERRORS,
    MOST_PAIRS,
    Held,
    Look,
    ProofTerms,
    Step,
    ceilings_held,
    look,
    spending,
)
from autotune.stats.verdict import Comparison, judge
from autotune.tuning.reporter import Reporter

LEAST_ROUNDS = 2


@dataclass(frozen=True)
class Finalist:
    """A shape with what it showed in turn with the default. `gain` is the objective beside the
    default's, None for the default itself; `held`: what is known of each ceiling."""

    shape: Shape
    figures: Figures
    gain: Comparison | None = None
    kept: bool = False
    """Whether it is better beyond noise, or holds a ceiling that the default breaks."""
    reason: str = ""
    held: Mapping[str, Held] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """All finalists, the default first, and which of them is the answer."""

    finalists: tuple[Finalist, ...]
    rounds: int

    @property
    def winner(self) -> Finalist:
        """The best of those that are better than the default, which it is itself if none is."""
        kept = [each for each in self.finalists if each.kept]
        return max(
            kept, key=lambda each: each.gain.ratio if each.gain else 0.0, default=self.finalists[0]
        )


def prove(
    trials: Trials,
    default: Shape,
    challengers: list[Shape],
    asked: Collection[str | None],
    reporter: Reporter,
) -> Proof:
    """Measure the default and its challengers in turn (A B C, C B A, …), until it is clear of each
    whether it is better, or there is no time for another round.

    Equal shapes are called different once in twenty designs, all looks and challengers together.
    """
    reporter.step("Measuring the finalists and mdadm's default, in turn")
    shapes = [default, *challengers]
    fits = int(trials.left_s / (len(shapes) * trials.seconds))
    planned = max(LEAST_ROUNDS, min(MOST_PAIRS, fits))
    shown: dict[Shape, list[Figures]] = {shape: [] for shape in shapes}
    # Decided on before anything is seen.
    errors = dict(zip(challengers, ERRORS, strict=False))
    finalists: list[Finalist] = []
    for number in range(planned):
        rounds = max(LEAST_ROUNDS, number + 1) - number
        # What could not be measured once cannot be compared any more.
        whole = [shape for shape in shapes if len(shown[shape]) == number]
        order = whole if number % 2 == 0 else whole[::-1]
        for done, shape in enumerate(order):
            trials.expect(rounds * len(order) - done)
            record = trials.run(PROOF, shape)
            if record.status is Status.COMPLETE:
                shown[shape].append(record.figures)
            elif shape == default and finalists:
                # The rounds before stand.
                return Proof(tuple(finalists), number)
            elif shape == default:
                raise MeasurementError(record.reason)
        if number + 1 < LEAST_ROUNDS:
            continue
        looks = planned - LEAST_ROUNDS + 1
        at = number + 1 - LEAST_ROUNDS
        whole = [s for s in shapes if len(shown[s]) == number + 1]
        judged = [
            _judged(trials, shown, default, each, asked, spending(looks, errors[each])[at], planned)
            for each in whole[1:]
        ]
        finalists = [Finalist(default, mean(shown[default])), *(each for each, _ in judged)]
        if all(seen.step is not Step.MORE for _, seen in judged):
            break
        if number + 1 < planned:
            reporter.step("Not clear yet; measuring another round")
    return Proof(tuple(finalists), len(shown[default]))


def _judged(
    trials: Trials,
    shown: Mapping[Shape, list[Figures]],
    default: Shape,
    shape: Shape,
    asked: Collection[str | None],
    error: float,
    planned: int,
) -> tuple[Finalist, Look]:
    past = [anchor.figures for anchor in neighbours(trials.anchors)]
    after, before = shown[shape], shown[default]
    verdict = judge(trials.figures, after, before, past, error=error)
    terms = ProofTerms(trials.figures, "it", frozenset(asked), compared_with="mdadm's defaults")
    now, then = mean(after), mean(before)
    seen = look(terms, verdict, then, now, len(after), planned)
    held = ceilings_held(trials.figures, verdict.figures, then, now)
    keep = seen.step is Step.KEEP
    return Finalist(shape, now, verdict.overall, keep, seen.reason, held), seen
