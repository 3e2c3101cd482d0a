"""One pass of re-tuning: is the profile still true, and if not, what then. No I/O of its own.

What an array can do is behind `Managed`, so that a year of passes can be tried in minutes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting
from autotune.stats.verdict import Comparison, Conclusion, Verdict

MOVED = math.log(1.2)
"""A level that moved by less is what other loads and temperatures do from day to day."""
SURE = 3.0
"""And it has to be so many standard deviations of the noise."""
WORTH = 1.03
"""A new setting has to be better by so much, or profiles would flap between equals."""


@dataclass(frozen=True)
class ComparedInTurn:
    """Two settings measured in turn. `before` and `after`: the mean figures of the one that was
    there and of the other; `verdict`: the other against it."""

    verdict: Verdict
    before: Figures
    after: Figures


@dataclass(frozen=True)
class LastSeen:
    """What an array showed when its profile was adopted or last looked into: the fingerprint, the
    setting, and the figures with it (by name)."""

    fingerprint: str
    setting: Setting
    figures: Mapping[str, Estimate]


class Managed(Protocol):
    """One array with a profile on it, the incumbent."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def incumbent(self) -> Setting:
        """The values of the profile's knobs, as they are."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What is measured, with ceilings where they are known."""

    def against_originals(self) -> ComparedInTurn:
        """Measure the incumbent and, as the other, the original settings."""

    def back_to_originals(self) -> None:
        """Put the original settings back; they are the incumbent then."""

    def tune(self) -> Setting | None:
        """Search for something better than the incumbent; None if nothing was proven."""

    def prove(self, setting: Setting) -> ComparedInTurn:
        """Measure the incumbent and, as the other, this setting."""

    def is_original(self, setting: Setting) -> bool:
        """Whether a setting changes nothing that was there before the profile."""

    def adopt(self, setting: Setting, proof: ComparedInTurn) -> None:
        """Make a setting the incumbent."""


@dataclass(frozen=True)
class Pass:
    """What a pass found and did. `gain`: of the incumbent over the originals, or None if that was
    not measured; `better`: of what was adopted (or advised) over the incumbent."""

    outcome: Literal["unchanged", "kept", "reverted", "advised", "adopted"]
    reasons: tuple[str, ...]
    gain: Comparison | None
    better: Comparison | None
    known: LastSeen
    latest: Figures
    """What is in force showed so much when it was measured last."""
    drift: float
    """The objective with the incumbent over that when it was adopted; 1.0: as then."""


def run_pass(
    managed: Managed,
    known: LastSeen | None,
    adopt: bool,
    reverted: Callable[[Pass], None] = lambda _: None,
) -> Pass:
    """Check, and if something moved, tune; adopt only what was proven twice. Without `adopt`
    nothing that is in force changes; that the originals would be better is advice, too.

    `reverted` is called once the originals are back, with the pass as it is then: what follows is
    a search, which may be cut at any time.
    """
    proof = managed.against_originals()
    reasons, moved = what_changed(known, managed), what_moved(known, managed, proof.before)
    if moved and not reasons:
        # A search costs many times as much as another look, and noise moves figures, too.
        proof = managed.against_originals()
        again = what_moved(known, managed, proof.before)
        moved = {name: text for name, text in again.items() if name in moved}
    reasons = (*reasons, *moved.values())
    gain = inverse(proof.verdict.overall)
    drift = objective_ratio(managed.figures, proof.before, known.figures if known else {})
    now = LastSeen(managed.fingerprint, managed.incumbent, proof.before)
    worse = what_is_worse(managed.figures, proof)
    if worse and not adopt:
        better = proof.verdict.overall
        why = (*worse, *reasons)
        return Pass("advised", why, gain, better, now, now.figures, drift)
    if worse:
        managed.back_to_originals()
        now = LastSeen(managed.fingerprint, managed.incumbent, proof.after)
        reverted(Pass("reverted", (*worse, *reasons), gain, None, now, now.figures, drift))
    elif known is None:
        return Pass("unchanged", ("first look",), gain, None, now, now.figures, drift)
    elif not reasons:
        # The level of the day it was adopted stays what is compared with: else it could creep.
        return Pass("unchanged", (), gain, None, known, now.figures, drift)
    setting = managed.tune()
    second = managed.prove(setting) if setting is not None else None
    why = (*worse, *reasons)
    if setting is None or second is None or not is_worth_it(managed.figures, second):
        outcome: Literal["reverted", "kept"] = "reverted" if worse else "kept"
        return Pass(outcome, why, gain, None, now, now.figures, drift)
    if not adopt:
        return Pass("advised", why, gain, second.verdict.overall, now, now.figures, drift)
    if managed.is_original(setting):
        managed.back_to_originals()
        now = LastSeen(managed.fingerprint, managed.incumbent, second.after)
        done = Pass("reverted", why, gain, None, now, now.figures, drift)
        reverted(done)
    else:
        managed.adopt(setting, second)
        now = LastSeen(managed.fingerprint, managed.incumbent, second.after)
        better = second.verdict.overall
        done = Pass("adopted", why, gain, better, now, now.figures, drift)
    return done


def what_changed(known: LastSeen | None, managed: Managed) -> tuple[str, ...]:
    """What is another than when the profile was adopted, in words."""
    if known is None:
        return ()
    reasons = []
    if known.fingerprint != managed.fingerprint:
        reasons.append("the array has other members, another kernel or other memory")
    for knob, value in known.setting.items():
        if managed.incumbent.get(knob, value) != value:
            reasons.append(f"{knob} was {value} and is {managed.incumbent[knob]}")
    return tuple(reasons)


def what_moved(known: LastSeen | None, managed: Managed, figures: Figures) -> dict[str, str]:
    """The figures that are no longer what they were, each in words."""
    moved: dict[str, str] = {}
    if known is None:
        return moved
    for name, then in known.figures.items():
        now = figures.get(name)
        if now is None or not name.endswith(".throughput"):
            continue
        by = math.log(now.value / then.value)
        if abs(by) > max(MOVED, SURE * math.hypot(now.spread, then.spread)):
            moved[name] = f"{name} is at {math.exp(by):.2f} of what it was"
    before = {figure.name for figure in broken(managed.figures, known.figures)}
    over = [f.name for f in broken(managed.figures, figures) if f.name not in before]
    return {**moved, **{name: f"{name} is over its ceiling" for name in over}}


def is_worth_it(figures: tuple[Figure, ...], proof: ComparedInTurn) -> bool:
    """Whether the other setting is to replace the incumbent: it breaks no ceiling, and is
    notably better, or holds one that the incumbent breaks."""
    if broken_ceilings(figures, proof.after, proof.before):
        return False
    overall = proof.verdict.overall
    if overall.conclusion is Conclusion.BETTER and overall.ratio >= WORTH:
        return True
    return any(
        proof.verdict.figures[figure.name].conclusion is Conclusion.BETTER
        for figure in broken(figures, proof.before)
        if figure.name in proof.verdict.figures
    )


def what_is_worse(figures: tuple[Figure, ...], proof: ComparedInTurn) -> tuple[str, ...]:
    """Why the incumbent has to go at once, `proof` being of the originals: they would be worth
    adopting in its place."""
    if not is_worth_it(figures, proof):
        return ()
    over = [figure.name for figure in broken(figures, proof.before)]
    if over:
        return (f"{' and '.join(over)} is over its ceiling, which the original settings hold",)
    return ("it is slower than the original settings",)


def broken(figures: tuple[Figure, ...], measured: Figures) -> list[Figure]:
    """The figures that are surely over their ceiling in ns: by more than their noise."""
    return [
        figure
        for figure in figures
        if figure.ceiling is not None
        and figure.name in measured
        and measured[figure.name].interval[0] > figure.ceiling
    ]


def objective_ratio(figures: tuple[Figure, ...], now: Figures, then: Figures) -> float:
    """The objective now over that then, of the figures known on both sides."""
    both = [f for f in figures if f.weight > 0 and f.name in now and f.name in then]
    total = sum(f.weight for f in both)
    logs = [f.weight / total * math.log(now[f.name].value / then[f.name].value) for f in both]
    return math.exp(sum(logs))


def inverse(comparison: Comparison) -> Comparison:
    """The same, seen from the other side."""
    other = {Conclusion.BETTER: Conclusion.WORSE, Conclusion.WORSE: Conclusion.BETTER}
    return Comparison(
        1 / comparison.ratio,
        1 / comparison.high,
        1 / comparison.low,
        other.get(comparison.conclusion, Conclusion.SAME),
    )
