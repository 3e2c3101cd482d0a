"""The panel's table, and its totals beside the floors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from autotune.quantities import show_seconds
from benchmarks.panel.entries import Entry

WORTH = 1.05
"""A possible gain from which on a share of it is asked for."""
MEDIAN_SHARE, LEAST_SHARE, MOST_OVER = 0.8, 0.5, 0.02


@dataclass(frozen=True)
class Row:
    """One run on one array. `kept` and `possible` are gains as fio measured them (None: no
    such setting but the original one, or the best is not known)."""

    entry: Entry
    commit: str
    seed: int
    time: str | None
    failed: str
    claimed: float | None
    kept: float | None
    possible: float | None
    seconds: float
    tried: int
    over: float
    """The share of the trials' seconds over a ceiling."""
    over_s: float
    agrees: bool
    held: bool

    @property
    def share(self) -> float | None:
        """Of the possible gain, what was kept, in logs; None if nothing much is to be had."""
        if self.possible is None or self.possible < WORTH:
            return None
        return math.log(self.kept or 1.0) / math.log(self.possible)


def row(entry: Entry, result: Mapping[str, Any]) -> Row:
    if result["status"]:
        said = result["said"].strip().splitlines()
        why = said[-1] if said else f"exit status {result['status']}"
        nothing = (None, None, None, result["seconds"], 0, 0.0, 0.0, True, True)
        return Row(entry, result["commit"], result["seed"], result["time"], why, *nothing)
    answer, judged = result["answer"], result["judged"]
    claimed = answer["gain"] if answer["adopt"] else None
    kept, best = judged["kept"]["gain"], judged["best"]["gain"]
    agrees = claimed is None or (
        kept is not None
        and (kept["ratio"] > 1) == (claimed["ratio"] > 1)
        and kept["high"] >= claimed["low"]
        and kept["low"] <= claimed["high"]
    )
    return Row(
        entry,
        result["commit"],
        result["seed"],
        result["time"],
        "",
        claimed["ratio"] if claimed else None,
        kept["ratio"] if kept else None,
        (best["ratio"] if best else 1.0) if judged["best_known"] else None,
        answer["seconds"],
        answer["searched"],
        result["over_s"] / max(result["trial_s"], 1.0),
        result["over_s"],
        agrees,
        not judged["kept"]["broken"],
    )


HEADING = (
    f"{'':26} {'seed':>4} {'claimed':>8} {'by fio':>7} {'possible':>8} {'share':>6} "
    f"{'time':>12} {'tried':>5} {'over':>6}  {'commit':8}  fio agrees, ceilings hold"
)


def line(each: Row) -> str:
    name = each.entry.name + ("*" if each.entry.held_out else "")
    if each.failed:
        return f"{name:26} {each.seed:4} failed: {each.failed}"
    share = f"{each.share:.0%}" if each.share is not None else "–"
    words = f"{'yes' if each.agrees else 'NO'}, {'yes' if each.held else 'NO'}"
    words = words if each.claimed else "nothing kept"
    limit = f" (with --time {each.time}, not the default)" if each.time else ""
    return (
        f"{name:26} {each.seed:4} {_times(each.claimed):>8} {_times(each.kept):>7} "
        f"{_times(each.possible):>8} {share:>6} {show_seconds(each.seconds):>12} {each.tried:5} "
        f"{each.over_s:4.0f} s  {each.commit:8}  {words}{limit}"
    )


def _times(gain: float | None) -> str:
    return "–" if gain is None else f"×{gain:.2f}"


def totals(rows: Sequence[Row]) -> list[str]:
    """What all runs come to, each with its floor."""
    done = [each for each in rows if not each.failed]
    lines = [f"{len(rows)} runs, {len(rows) - len(done)} failed; * held out"]
    shares: dict[str, list[float]] = {}
    for each in done:
        if each.share is not None:
            shares.setdefault(each.entry.name, []).append(each.share)
    by_array = {name: median(found) for name, found in shares.items()}
    if by_array:
        middle = median(by_array.values())
        lines.append(f"share of the possible, median of arrays: {middle:.0%} (floor 80 %)")
        low = [name for name, share in by_array.items() if share < LEAST_SHARE]
        where = f": {', '.join(low)}" if low else ""
        lines.append(f"arrays with less than half of it: {len(low)} of {len(by_array)}{where}")
    nothing = [each for each in done if each.entry.begins_at_best and not each.entry.settings]
    if nothing:
        silent = sum(each.claimed is None for each in nothing)
        lines.append(f"nothing claimed where nothing is: {silent} of {len(nothing)} (29 of 30)")
    kept = [each for each in done if each.claimed is not None]
    if kept:
        held, agreed = sum(e.held for e in kept), sum(e.agrees for e in kept)
        lines.append(f"ceilings held by fio's measure: {held} of {len(kept)} kept (49 of 50)")
        lines.append(f"fio agrees with the gain: {agreed} of {len(kept)} kept")
    careful = [each for each in done if each.entry.lab.filesystem]
    if careful:
        worst = max(careful, key=lambda each: each.over)
        whole = sum(each.over for each in careful) / len(careful)
        lines.append(
            f"time over a ceiling where a filesystem is mounted: {whole:.1%} on average, "
            f"{worst.over:.1%} on {worst.entry.name} (floor {MOST_OVER:.0%})"
        )
    others = [each.over for each in done if not each.entry.lab.filesystem]
    if others:
        lines.append(f"on the others, which nobody uses: {sum(others) / len(others):.1%}")
    return lines
