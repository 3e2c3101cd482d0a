"""What is left of a setting that a proof did not show to be better. Pure."""

import math
from collections.abc import Iterable, Sequence

from autotune.knobs import Knob
from autotune.measure.workload import Phase
from autotune.problem.figure import Figure
from autotune.problem.setting import Setting, setting_key
from autotune.stats.verdict import NOTABLE, Comparison, Verdict
from autotune.tuning.relevance import figures_moved

PROBABLY = 0.5
"""A gain of so much of its interval's half is worth a proof of its own."""


def better_part(
    knobs: Iterable[Knob],
    phases: Sequence[Phase],
    figures: Iterable[Figure],
    setting: Setting,
    baseline: Setting,
    verdict: Verdict,
) -> Setting | None:
    """The changes that move only what the proof showed to be better, probably; None if there are
    none, or if that is all of the setting.

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
    for knob in knobs:
        moved = set(figures_moved(knob, phases))
        if knob.name in setting and moved & better and not moved & doubtful:
            part[knob.name] = setting[knob.name]
    key = setting_key(part)
    return None if key in (setting_key(baseline), setting_key(setting)) else part


def _looks_better(throughput: Comparison) -> bool:
    half = math.log(throughput.high / throughput.low) / 2
    return math.log(throughput.ratio) > max(NOTABLE, PROBABLY * half)
