"""What a run has to say beside its result: why its search ended, what came nearest, what the
ceilings cost, and what to try next."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.knobs import ALL, DEFAULT
from autotune.measure.workload import shipped
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, gain
from autotune.problem.setting import Setting, setting_key, show_setting
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results.best_seen import LOOKS_BETTER
from autotune.results.offers import Offer, offers, roomy, was_met
from autotune.results.pareto import Point, points
from autotune.stats.verdict import Verdict
from autotune.store import TrialRecord
from autotune.suggested import with_folder
from autotune.system.memory import DEFAULT_RAM_SHARE
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.remaining import Stop
from autotune.tuning.stored_problem import stored_problem

NOTED = 1.01
"""A gain in a trial from which on it is worth a word."""


@dataclass(frozen=True)
class Nearest:
    """The setting that came nearest to being kept, as its trials showed it, and what was in its
    way. `option` is what would let it pass, if an option would."""

    point: Point
    baseline: Point
    """The original settings, as all trials together showed them."""
    obstacle: str
    option: str = ""


@dataclass(frozen=True)
class Remarks:
    """`stopped`: why the search ended. `notes`: what else is to be known. `offers`: what other
    ceilings would give. `command`: what to try next, and `why`."""

    stopped: str = ""
    nearest: Nearest | None = None
    notes: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    command: str = ""
    why: str = ""


def remarks(
    preparation: Preparation,
    records: Sequence[TrialRecord],
    figures: Sequence[Figure],
    winner: Setting | None,
    verdicts: Mapping[object, Verdict],
    stopped: Stop,
) -> Remarks:
    """`winner` is None if nothing is kept; `verdicts` are those of the proofs that failed, by the
    setting's key."""
    problem = stored_problem(preparation, figures)
    found = points(problem, figures, records, None)
    if not found:
        return Remarks(stopped.text)
    baseline = found[0]
    kept = next(
        (p for p in found if winner is not None and setting_key(p.setting) == setting_key(winner)),
        baseline,
    )
    aborted = _aborted(figures, records, baseline)
    seen = [
        point
        for point in found
        if was_met(figures, point, [r.figures for r in records if r.number in point.trials])
    ]
    words = Remarks(stopped.text, offers=tuple(offers(figures, [*seen, *aborted], kept, baseline)))
    if winner is not None:
        return replace(words, notes=_looked_better(figures, found, kept, problem.baseline))
    nearest = _nearest(figures, found, aborted, baseline, verdicts)
    command, why = _next(preparation, nearest, words.offers, stopped)
    return replace(words, nearest=nearest, command=command, why=why)


def _looked_better(
    figures: Sequence[Figure], found: Sequence[Point], kept: Point, baseline: Setting
) -> tuple[str, ...]:
    """Whoever sees a greater gain in the table of trials will ask why that was not kept."""
    better = [
        point
        for point in found[1:]
        if point.gain.value > LOOKS_BETTER * kept.gain.value
        and not point.in_turn
        and point.holds(figures, found[0])
    ]
    if not better:
        return ()
    best = max(better, key=lambda point: point.gain.value)
    shown = show_setting(best.setting, baseline)
    low, high = best.gain.interval
    return (
        f"In the search, another combination looked better than what is kept: {shown}: overall "
        f"×{best.gain.value:.2f} ({low:.2f} to {high:.2f}). It was not measured in turn, and the "
        "best of many looks better than it is.",
    )


def _aborted(
    figures: Sequence[Figure], records: Sequence[TrialRecord], baseline: Point
) -> list[Point]:
    """What trials showed that were ended early, the rest as the original settings have it."""
    found = []
    for record in records:
        if record.status is not Status.ABORTED:
            continue
        whole = {**baseline.figures, **record.figures}
        improvement = gain(figures, whole, baseline.figures)
        if improvement is not None:
            found.append(
                Point(
                    record.requested, improvement, baseline.latency, whole, (record.number,), False
                )
            )
    return found


def _nearest(
    figures: Sequence[Figure],
    found: Sequence[Point],
    aborted: Sequence[Point],
    baseline: Point,
    verdicts: Mapping[object, Verdict],
) -> Nearest | None:
    """Of what was measured in full the best; what was ended early, if that is all there is."""
    better = [p for p in found[1:] if p.gain.value > NOTED]
    # What was proven not to be kept is told already.
    candidates = [p for p in better if setting_key(p.setting) not in verdicts]
    candidates = candidates or [p for p in aborted if p.gain.value > NOTED]
    if not candidates:
        return None

    def rank(point: Point) -> float:
        """The gain, less by how much it passes its ceilings."""
        passed = [
            math.log(point.figures[f.name].value / limit)
            for f in figures
            if (limit := f.limit(baseline.figures)) and f.name in point.figures
        ]
        return math.log(point.sure_gain) - max([0.0, *passed])

    best = max(candidates, key=rank)
    return Nearest(best, baseline, *_obstacle(figures, best, baseline.figures))


def _obstacle(figures: Sequence[Figure], point: Point, before: Figures) -> tuple[str, str]:
    """What was in the way of a setting, and the option that would take it out of the way."""
    over = [
        (figure, limit)
        for figure in figures
        if (limit := figure.limit(before)) is not None
        and figure.name in point.figures
        and point.figures[figure.name].value > limit
    ]
    if over:
        figure, limit = max(over, key=lambda o: point.figures[o[0].name].value / o[1])
        shown = point.figures[figure.name].value
        text = f"{figure.name} was {show_latency(shown)} where {show_latency(limit)} is allowed"
        return text, f"--p99-ceiling {figure.phase}={roomy(shown)}"
    low, high = point.gain.interval
    if low <= 1.0:
        return f"that may be noise ({low:.2f} to {high:.2f})", ""
    return "it was not measured in turn with the original settings", ""


def _next(
    preparation: Preparation, nearest: Nearest | None, offered: Sequence[Offer], stopped: Stop
) -> tuple[str, str]:
    """The next command that is worth a try, and why; nothing if there is none."""
    options = preparation.options
    more, why = "", "for more trials"
    if nearest is not None and nearest.option:
        more, why = nearest.option, "to allow what came nearest"
    elif stopped.option == "time":
        more = f"--time {_minutes(options.time_s * 2)}"
    elif stopped.option == "write-budget" and options.write_budget:
        more = f"--write-budget {options.write_budget * 2 >> 20}MiB"
    elif stopped.option == "trials":
        more = f"--trials {options.trials * 2} --time {_minutes(options.time_s * 2)}"
    elif offered:
        more, why = offered[0].option, "to allow another ceiling"
    elif options.knobs == DEFAULT:
        more, why = "--knobs all", "to look at more than the default settings"
    return (_command(preparation, more), why) if more else ("", "")


def _minutes(seconds: float) -> str:
    return f"{math.ceil(seconds / 60)}min"


def _command(preparation: Preparation, more: str) -> str:
    """A run as this one was, as far as it can be said in a line. A ceiling there takes the place
    of all that a workload has, so these are named beside it."""
    options = preparation.options
    words = ["autotune run", options.device]
    name = options.workload.name
    if name != "balanced":
        words.append(f"--workload {name if name in shipped() else 'FILE'}")
    if options.destructive:
        words.append(f"--destructive {options.destructive}")
    named = {part.partition("=")[0] for part in more.split() if "=" in part}
    words += [
        f"--p99-ceiling {ceiling}"
        for ceiling in options.ceilings
        if (named or ceiling not in options.workload.limits) and ceiling.phase not in named
    ]
    words += [text for text in _limits(options) if text.split()[0] not in more.split()]
    return with_folder(" ".join([*words, more]), preparation.state_dir)


def _limits(options: Options) -> list[str]:
    """What else was asked for: a run without it would be another one."""
    words = []
    if options.knobs != DEFAULT:
        names = ",".join(knob.name for knob in options.knobs)
        words.append(f"--knobs {'all' if options.knobs == ALL else names}")
    if options.ram_budget != DEFAULT_RAM_SHARE:
        words.append(f"--ram-budget {_budget(options.ram_budget)}")
    if options.write_budget is not None:
        words.append(f"--write-budget {_budget(options.write_budget)}")
    if options.scratch is not None:
        words.append(f"--scratch {shlex.quote(str(options.scratch))}")
    if options.careful is not None:
        words.append("--careful" if options.careful else "--eager")
    if options.strategy != Options.strategy:
        words.append(f"--strategy {options.strategy}")
    if options.trials != Options.trials:
        words.append(f"--trials {options.trials}")
    if options.time_s != Options.time_s:
        words.append(f"--time {_minutes(options.time_s)}")
    if options.seed != Options.seed:
        words.append(f"--seed {options.seed}")
    return words


def _budget(amount: int | float) -> str:
    """Bytes or a share of all memory, as the options take them."""
    if isinstance(amount, float):
        return f"{100 * amount:g}%"
    unit, scale = next(
        (unit, scale)
        for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))
        if amount % scale == 0
    )
    return f"{amount // scale}{unit}"
