"""Which knobs can move what a phase shows, and so where two settings can differ. Pure."""

from collections.abc import Iterable, Sequence

from autotune.knobs import Knob
from autotune.measure.workload import Phase
from autotune.problem.setting import Setting, setting_key


def figures_moved(knob: Knob, phases: Iterable[Phase]) -> tuple[str, ...]:
    """The names of the figures of these phases that a knob can move."""
    return tuple(
        figure.name
        for phase in phases
        for figure in phase.figures()
        if knob.moves(phase, figure.quantity)
    )


def is_movable(knobs: Iterable[Knob], phase: Phase) -> bool:
    """Whether any of the knobs can move a figure of the phase."""
    return any(figures_moved(knob, [phase]) for knob in knobs)


def relevant(knobs: Iterable[Knob], phase: Phase, setting: Setting) -> object:
    """What of a setting can move a phase: equal keys, equal figures but for noise."""
    moving = {knob.name for knob in knobs if figures_moved(knob, [phase])}
    return (phase.name, setting_key({k: v for k, v in setting.items() if k in moving}))


def differing(
    knobs: Sequence[Knob], phases: Iterable[Phase], one: Setting, other: Setting
) -> tuple[Phase, ...]:
    """Those of the phases in which two settings can show different figures."""
    return tuple(p for p in phases if relevant(knobs, p, one) != relevant(knobs, p, other))
