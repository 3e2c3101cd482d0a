"""What is left of a setting that a proof did not show to be better. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping

from autotune.problem.figure import Figure
from autotune.problem.setting import Setting, setting_key
from autotune.stats.verdict import NOTABLE, Comparison, Verdict

PROBABLY = 0.5
"""A gain of so much of its interval's half is worth a proof of its own."""


def better_part(
    moves: Mapping[str, Collection[str]],
    figures: Iterable[Figure],
    setting: Setting,
    baseline: Setting,
    verdict: Verdict,
) -> Setting | None:
    """The changes that move only what the proof showed to be better, probably; None if there are
    none, or if that is all of the setting. `moves`: the figures that each knob can move.

    A gain in one figure may be hidden by the noise of another that other changes move. A proof
    of the part measures fewer phases, so it costs less and shows more.
    """
    compared = verdict.figures
    better: set[str] = set()
    doubtful: set[str] = set()
    for figure in figures:
        comparison = compared.get(figure.name)
        if comparison is None:
            continue
        if figure.weight > 0:
            (better if _looks_better(comparison) else doubtful).add(figure.name)
        elif figure.ratio is not None and comparison.ratio > figure.ratio:
            doubtful.add(figure.name)
    part = dict(baseline)
    for knob, value in setting.items():
        moved = set(moves.get(knob, ()))
        if moved & better and not moved & doubtful:
            part[knob] = value
    key = setting_key(part)
    return None if key in (setting_key(baseline), setting_key(setting)) else part


def _looks_better(throughput: Comparison) -> bool:
    half = math.log(throughput.high / throughput.low) / 2
    return math.log(throughput.ratio) > max(NOTABLE, PROBABLY * half)
