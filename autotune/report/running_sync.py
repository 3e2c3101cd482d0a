"""When a sync that is under way will end."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from autotune.quantities import in_brackets, show_moment, show_seconds, show_share
from autotune.report.sync_forecast import show_rate_kib
from autotune.sync_forecast.running import Running, Watched
from autotune.system.sync import NAMES


def running_lines(device: str, running: Running, within_s: float | None = None) -> Iterator[str]:
    """When a sync that is under way will end, and whether that is within so many seconds."""
    what = NAMES.get(running.action, running.action)
    now = time.time()
    end, low, high = (
        show_moment(now + s, now) for s in (running.left_s, running.low_s, running.high_s)
    )
    spread = in_brackets(show_seconds(running.low_s), show_seconds(running.high_s))
    # A minute may end within a second.
    moments = in_brackets(low, high) if spread else ""
    yield (
        f"The {what} of {device} is {show_share(running.share, 1)} done, at "
        f"{show_rate_kib(running.kib_s)} of each member. It will take "
        f"{show_seconds(running.left_s)} more{spread}: until {end}{moments}, "
        "if the load stays as it is."
    )
    if within_s is not None:
        surely = running.high_s <= within_s or running.low_s > within_s
        will = "will" if running.high_s <= within_s else "will not" if surely else "may"
        yield f"So it {will} be over within {show_seconds(within_s)}."
    if running.skips and running.action in ("recover", "resync"):
        yield (
            "It may end sooner: the array has a bitmap, and what that knows to be alike is skipped."
        )


def ended_line(device: str, watched: Watched) -> str:
    """That a sync has ended meanwhile."""
    how = "was interrupted" if watched.interrupted else "has ended"
    return (
        f"The {NAMES.get(watched.action, watched.action)} of {device} {how} while it was watched."
    )


def ended_document(device: str, watched: Watched) -> dict[str, Any]:
    return {
        "kind": "ended",
        "device": device,
        "action": watched.action,
        "interrupted": watched.interrupted,
    }


def running_document(device: str, running: Running) -> dict[str, Any]:
    return {"kind": "running", "device": device, **asdict(running)}
