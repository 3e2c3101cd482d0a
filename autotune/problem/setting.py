"""A value for each knob. Values are plain Python (`int`, `str`), never numpy's."""

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = int | str


Setting: TypeAlias = Mapping[str, Value]
"""A value for each knob, by the knob's name."""


def setting_key(setting: Setting) -> tuple[tuple[str, Value], ...]:
    """A hashable form of a setting: equal settings have equal keys."""
    return tuple(sorted(setting.items()))


def show_setting(setting: Setting, baseline: Setting) -> str:
    """The knobs that differ from the baseline, in one line."""
    changed = [f"{k} {v}" for k, v in setting.items() if v != baseline.get(k)]
    return ", ".join(changed) or "the original settings"
