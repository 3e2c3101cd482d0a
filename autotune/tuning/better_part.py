"""What is left of a setting by its proof: of one that was not shown to be better, and of one that
was, with changes that brought nothing. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping

from autotune.problem.figure import Figure
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import KnobShare
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
            (better if looks_better(comparison) else doubtful).add(figure.name)
        elif figure.ratio is not None and comparison.ratio > figure.ratio:
            doubtful.add(figure.name)
    part = dict(baseline)
    for knob, value in setting.items():
        moved = set(moves.get(knob, ()))
        if moved & better and not moved & doubtful:
            part[knob] = value
    key = setting_key(part)
    return None if key in (setting_key(baseline), setting_key(setting)) else part


def needed_part(
    moves: Mapping[str, Collection[str]],
    setting: Setting,
    baseline: Setting,
    better: Collection[str],
    probable: Collection[str],
    shares: Iterable[KnobShare],
) -> Setting | None:
    """A setting that was proven, without the changes for which its proof does not speak: they move
    none of the figures that are `better`; nor of the `probable` ones, if the models are sure of
    the change. None if that is all of it, or nothing. `moves`: the figures that each knob can move.

    The models know what was chosen for looking good, so they alone are no evidence. What moves a
    figure together with a change that stays was measured with that alone, so it stays.
    """
    sure = {share.knob for share in shares if share.gain.interval[0] > 1.0}
    changed = {
        knob: set(moves.get(knob, ()))
        for knob, value in setting.items()
        if value != baseline.get(knob)
    }
    needed = {
        knob
        for knob, moved in changed.items()
        if moved & set(better) or (knob in sure and moved & set(probable))
    }
    while more := {
        knob
        for knob, moved in changed.items()
        if knob not in needed and any(moved & changed[other] for other in needed)
    }:
        needed |= more
    if len(needed) in (0, len(changed)):
        return None
    return {**baseline, **{knob: setting[knob] for knob in needed}}


def looks_better(throughput: Comparison) -> bool:
    """Whether a proof showed that a throughput is better, probably."""
    return math.log(throughput.ratio) > max(NOTABLE, PROBABLY * throughput.half)
