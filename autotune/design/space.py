"""The shapes among which a design chooses, as a strategy takes them. Pure."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.design.shape import (
    BITMAP,
    CHUNKS_KIB,
    CONSISTENCIES,
    LAYOUTS,
    LEAST_DISKS,
    MDADM_CHUNK_KIB,
    PPL,
    Shape,
)
from autotune.errors import UsageError, closest
from autotune.measure.workload import Phase
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Dimension

LEVELS = ("raid6", "raid5", "raid10", "raid1")
"""The first that is possible is the one that all others are compared with."""


@dataclass(frozen=True)
class Space:
    """What may be chosen: each level goes with one way at least to become consistent again."""

    levels: tuple[str, ...]
    consistencies: tuple[str, ...]

    @property
    def default(self) -> Shape:
        """What mdadm makes of the first level by itself."""
        return self.plain(self.levels[0])

    def plain(self, level: str) -> Shape:
        """A level as mdadm makes it."""
        consistency = next(p for p in self.consistencies if _goes(level, p))
        return Shape(level, LAYOUTS[level][0], MDADM_CHUNK_KIB, consistency)

    @property
    def choices(self) -> dict[str, tuple[Value, ...]]:
        layouts = dict.fromkeys(layout for level in self.levels for layout in LAYOUTS[level])
        striped = any(self.plain(level).striped for level in self.levels)
        return {
            "level": self.levels,
            "layout": tuple(layouts),
            "chunk_kib": CHUNKS_KIB if striped else (MDADM_CHUNK_KIB,),
            "consistency": self.consistencies,
        }

    def allowed(self, setting: Setting) -> bool:
        """Whether there is such a shape; what means nothing for a level has one value alone."""
        shape = Shape.of(setting)
        return (
            shape.level in self.levels
            and shape.layout in LAYOUTS[shape.level]
            and (shape.striped or shape.chunk_kib == MDADM_CHUNK_KIB)
            and shape.consistency in self.consistencies
            and _goes(shape.level, shape.consistency)
        )

    @property
    def shapes(self) -> list[Shape]:
        """All of them."""
        names = list(self.choices)
        every = (
            dict(zip(names, values, strict=True))
            for values in itertools.product(*self.choices.values())
        )
        return [Shape.of(setting) for setting in every if self.allowed(setting)]

    @property
    def first(self) -> list[Shape]:
        """What is tried whatever a strategy says: each other level as mdadm makes it."""
        return [self.plain(level) for level in self.levels[1:]]

    @property
    def hints(self) -> tuple[Setting, ...]:
        """Each layout with mdadm's chunk, and with the 64 KiB that guides give for parity."""
        return tuple(
            shape.setting for shape in self.shapes if shape.chunk_kib in (64, MDADM_CHUNK_KIB)
        )

    def dimensions(self, phases: Iterable[Phase]) -> tuple[Dimension, ...]:
        """The axes, with the figures that each can move. Consistency is about writes alone."""
        phases = list(phases)

        def moved(name: str) -> frozenset[str]:
            return frozenset(f.name for p in phases if moves(name, p) for f in p.figures())

        return tuple(
            Dimension(name, values, name == "chunk_kib" and len(values) > 1, moved(name))
            for name, values in self.choices.items()
        )


def moves(name: str, phase: Phase) -> bool:
    """Whether a dimension can move what a phase shows."""
    return name != "consistency" or phase.writes


def _goes(level: str, consistency: str) -> bool:
    return consistency != PPL or level == "raid5"


def space(disks: int, levels: Sequence[str] = (), consistencies: Sequence[str] = ()) -> Space:
    """What may be made of so many disks: of what is asked for, or of all that survive the failure
    of a disk, and a crash without a resync in full.

    Raise UsageError if there is no such level or consistency, or nothing to choose from.
    """
    _check_names(levels, LEVELS, "RAID level that a design can have")
    _check_names(consistencies, CONSISTENCIES, "consistency")
    asked = tuple(dict.fromkeys(levels)) or tuple(
        level for level in LEVELS if level != "raid1" or disks == LEAST_DISKS[level]
    )
    chosen = tuple(dict.fromkeys(consistencies)) or (BITMAP, PPL)
    fitting = tuple(level for level in asked if disks >= LEAST_DISKS[level])
    if not fitting:
        raise UsageError(
            f"{asked[0]} needs {LEAST_DISKS[asked[0]]} disks, and {disks} are named; name more, or "
            "another --level."
        )
    fitting = tuple(level for level in fitting if any(_goes(level, p) for p in chosen))
    if not fitting:
        raise UsageError("Only raid5 can have the consistency ppl; take it too with --level raid5.")
    used = tuple(
        consistency for consistency in chosen if any(_goes(level, consistency) for level in fitting)
    )
    found = Space(fitting, used)
    if len(found.shapes) < 2:
        raise UsageError(
            f"There is nothing to choose: {found.default} is all that there is; allow another "
            "--level or --consistency."
        )
    return found


def _check_names(names: Iterable[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f'There is no {what} called "{name}"{closest(name, known)}; choose from '
                f"{', '.join(known)}."
            )
