"""Figures through time as one line of characters, the higher the more. Pure."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.-=+*#@"
"""For terminals without UTF-8."""


def bars(encoding: str) -> str:
    """The characters that a terminal has for it, the lowest first."""
    return BARS if encoding.lower().startswith("utf") else PLAIN_BARS


def spark(values: Sequence[float | None], encoding: str = "utf-8") -> str:
    """A character for each value, the higher the more; a blank where there is none."""
    steps = bars(encoding)
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(steps) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if v is None else steps[round((v - low) * scale)] for v in values)


def spark_under(values: Sequence[float | None], ceiling: float, encoding: str = "utf-8") -> str:
    """Likewise from 0 to a ceiling; all that is above it gets the highest character, which nothing
    below it has."""
    known = bars(encoding)
    steps, above = known[:-2], known[-1]
    scale = (len(steps) - 1) / ceiling
    return "".join(
        " " if value is None else above if value > ceiling else steps[round(value * scale)]
        for value in values
    )
