"""What a run found, for people; `tuning.document` has it for programs."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from autotune.problem.setting import show_setting
from autotune.quantities import show_bytes, show_count, show_seconds
from autotune.report.lines import print_indented
from autotune.report.sentences import drifted, parts
from autotune.report.tables import (
    nearest_table,
    proof_table,
    show_span,
    show_value_change,
)
from autotune.report.words import (
    print_long,
    print_nearest,
    print_open,
    print_refused,
    print_stopped,
    print_words,
)
from autotune.tuning.time_spent import Spent
from autotune.tuning.tune import Result


def _parts(result: Result) -> str:
    """What the overall figure is made of."""
    weighted = [f for f in result.figures if f.weight > 0]
    if len(weighted) < 2:
        return ""
    if len({f.weight for f in weighted}) == 1:
        names = ", ".join(f.phase for f in weighted[:-1])
        return f"the throughputs of {names} and {weighted[-1].phase}, which count the same"
    total = sum(f.weight for f in weighted)
    names = ", ".join(f"{f.phase} {f.weight / total:.0%}" for f in weighted)
    return f"the throughputs, by the workload's weights: {names}"


def _print_growth(console: Console, result: Result) -> None:
    """What the winner's stripe cache is worth only until the kernel's own growth gets there."""
    before, after = (s.get("stripe_cache_size") for s in (result.baseline, result.winner))
    grown = result.grown_stripes > int(before or 0) * 1.1
    if before == after or not grown or result.long.figures or result.long.left_out:
        return
    console.print(
        f"Within seconds the kernel itself enlarged the original stripe cache from {before} to "
        f"{result.grown_stripes}. So under a long load, with free memory, writes gain less than "
        "this."
    )


def _print_changes(console: Console, result: Result) -> None:
    """Each changed knob with what it brought, and those that went back, having brought nothing."""
    changed = {k: value for k, value in result.winner.items() if value != result.baseline[k]}
    brought = {share.knob: share.gain for share in result.shares if share.needed}
    if len(changed) == 1:
        # What it brought was measured in turn: the overall figure.
        brought = {}
    for knob, value in changed.items():
        change = show_value_change(console, knob, result.baseline[knob], value)
        share = brought.get(knob)
        if share:
            change += f" ×{share.value:.2f} ({show_span(*share.interval)})"
        console.print(change.rstrip())
    if brought:
        trials = show_count(result.trials, "trial")
        console.print(f"  (each change's part is an estimate from {trials})")
    for text in parts((s.knob, s.needed, s.gain.interval[0]) for s in result.shares):
        print_indented(console, text)


def print_result(console: Console, result: Result, profile: Path | None, ram: str) -> None:
    """The table of before and after, what changed, what it takes of RAM (`show_ram`), and what to
    do next."""
    nearest = result.words.nearest
    if nearest is not None and result.verdict is None:
        console.print(nearest_table(result, nearest))
        console.print()
    elif result.before:
        if result.verdict is not None and not result.keep:
            console.print(
                f"Measured in turn, and not kept: {show_setting(result.proposed, result.baseline)}",
                highlight=False,
            )
        console.print(proof_table(result))
        console.print()
    if result.keep and result.verdict:
        overall = result.verdict.overall
        said = f" ({show_span(overall.low, overall.high)}): {result.reason}."
        console.print(Text.assemble((f"Overall ×{overall.ratio:.2f}", "bold"), said))
        _print_changes(console, result)
        console.print(f"  takes {ram}")
        print_long(console, result)
        print_open(console, result)
    else:
        console.print(Text.assemble(("Keep what you have", "bold"), f": {result.reason}."))
        print_nearest(console, result)
    print_refused(console, result)
    print_stopped(console, result)
    if (result.verdict or nearest) and (parts := _parts(result)):
        console.print(f"Overall is made of {parts}.", highlight=False)
    print_words(console, result)
    allowed = f" of {show_bytes(result.write_budget)}" if result.write_budget else ""
    saved = (
        f"; about {show_seconds(result.saved_s)} saved by skipping unaffected phases and ending "
        "hopeless trials"
    )
    console.print(
        f"{show_count(result.searched, 'combination')} tried; with the original settings and the "
        f"proof, {show_count(result.trials, 'trial')} in {show_seconds(result.seconds)}, "
        f"{show_bytes(result.bytes_written)}{allowed} written"
        f"{saved if round(result.saved_s) else ''}."
    )
    if result.winner != result.baseline:
        _print_growth(console, result)
    for text in drifted(result.drifts):
        console.print(f"{text} The figures are corrected for that.")
    if result.unsupported:
        names = ", ".join(n for n in result.unsupported if not n.endswith("p999"))
        if names:
            console.print(f"Too few samples for {names}.")
    if profile is not None:
        console.print(f"Profile saved: {profile}")


NOTED_SHARE = 0.02
"""Of the time, what less than this went to is not told to people."""


def print_spent(console: Console, spent: Spent) -> None:
    """How much of the time was measuring, and what the rest went to."""
    least = NOTED_SHARE * spent.total
    rest = [f"{kind} {show_seconds(s)}" for kind, s in spent.overhead.items() if s > least]
    console.print(
        f"Measuring took {spent.measured_share:.0%} of the time; the rest: {', '.join(rest)}.",
        highlight=False,
    )
