"""Windows of a guard, as a recovery beside users gives them."""

import dataclasses
from collections.abc import Iterator

from autotune.guard.window import Window

MS = 1e6
MIB = 1 << 20
WINDOW_S = 5.0
FIRST = Window(
    time_s=1_800_000_000.0,
    p99_ns=60 * MS,
    p99_at_least_ns=55 * MS,
    p99_at_most_ns=66 * MS,
    samples=900,
    source="accounting",
    sync_bytes_per_s=5.4e6,
    sync_speed_max_kib=5500,
    foreground_iops=41.0,
    share=0.1,
    left_s=593.0,
    left_low_s=480.0,
    left_high_s=750.0,
    out_of_reach=False,
    finish_s=None,
    needed_kib=None,
    impossible=False,
    action="recovery",
)


def some_windows(count: int, **changes: object) -> Iterator[Window]:
    """So many, five seconds apart: the p99 goes up and down around 80 ms, the sync gets on."""
    for number in range(count):
        yield dataclasses.replace(
            FIRST,
            **{
                "time_s": FIRST.time_s + WINDOW_S * number,
                "p99_ns": (40 + 5 * (number % 10)) * MS,
                "share": 0.1 + 0.8 * number / count,
                **changes,
            },  # type: ignore[arg-type]
        )
