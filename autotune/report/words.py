"""What a run says beside its figures: what is left open, what came nearest, what to try next."""

from rich.console import Console

from autotune.problem.setting import setting_key, show_setting
from autotune.quantities import show_times
from autotune.report.sentences import next_best, no_long_load, not_kept, reaches
from autotune.report.tables import show_change, show_span
from autotune.stats.sequential import Held
from autotune.tuning.tune import Result


def print_long(console: Console, result: Result) -> None:
    """What a load of a minute showed, beside that of the first seconds."""
    compared = result.verdict.figures if result.verdict else {}
    for name, long in result.long.figures.items():
        burst = f"×{compared[name].ratio:.2f}" if name in compared else "?"
        console.print(
            f"{name}: first seconds {burst}, over {result.long.seconds:.0f} s of load "
            f"{show_change(long)}.",
            highlight=False,
        )
    if result.long.left_out:
        console.print(no_long_load(result.long.left_out))


def print_words(console: Console, result: Result) -> None:
    """What else is to be known, and what to try next."""
    words = result.words
    for note in words.notes:
        console.print(note)
    if words.offers:
        console.print(
            "What other ceilings would give, as trials showed it (not proven). Each is a fifth "
            "above what was measured, because of noise:"
        )
    for offer in words.offers:
        setting = show_setting(offer.setting, result.baseline)
        console.print(f"  {offer.text} ({setting})", highlight=False)
    if words.command:
        console.print(f"Next, {words.why}:\n  {words.command}", soft_wrap=True, highlight=False)


def print_open(console: Console, result: Result) -> None:
    """The ceilings that the noise leaves open."""
    for figure in result.figures:
        comparison = result.verdict.figures.get(figure.name) if result.verdict else None
        if result.held.get(figure.name) is Held.HOLDS and comparison and figure.ceiling:
            high_ns = result.before[figure.name].value * comparison.high
            if high_ns > figure.ceiling:
                console.print(reaches(figure.name, figure.ceiling, high_ns), highlight=False)
        if result.held.get(figure.name) is Held.NOT_SHOWN and comparison and figure.ratio:
            console.print(
                f"{figure.name}: up to ×{figure.ratio:.2f} of the original is allowed, and "
                f"{show_change(comparison)} was measured. So the noise leaves open whether it is "
                "within the limit.",
                highlight=False,
            )


def print_refused(console: Console, result: Result) -> None:
    """What else was measured in turn, and why it is not kept."""
    for setting, decision in result.refused:
        shown = show_setting(setting, result.baseline)
        console.print(not_kept(shown, decision.reason), highlight=False)


def print_nearest(console: Console, result: Result) -> None:
    """What came nearest, and what was in its way."""
    nearest = result.words.nearest
    if result.verdict is not None:
        overall = result.verdict.overall
        times = show_times(result.pairs)
        console.print(
            f"Overall ×{overall.ratio:.2f} ({show_span(overall.low, overall.high)}), measured "
            f"in turn {times}.",
            highlight=False,
        )
    if nearest is None:
        return
    other_in_turn = result.verdict is not None
    if not other_in_turn or setting_key(nearest.point.setting) != setting_key(result.proposed):
        setting = show_setting(nearest.point.setting, result.baseline)
        console.print(
            next_best(setting, nearest.point.gain.value, nearest.obstacle, other_in_turn),
            highlight=False,
        )


def print_stopped(console: Console, result: Result) -> None:
    """Why no more was tried."""
    if result.words.stopped:
        console.print(f"The search ended: {result.words.stopped}.")
