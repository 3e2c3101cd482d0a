"""A value for each knob. Values are plain Python (`int`, `str`), never numpy's."""

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = int | str


Setting: TypeAlias = Mapping[str, Value]
"""A value for each knob, by the knob's name."""


def setting_key(setting: Setting) -> tuple[tuple[str, Value], ...]:
    """A hashable form of a setting: equal settings have equal keys."""
    return tuple(sorted(setting.items()))
