"""What is stored of an array, made up: syncs under guard, a forecast, a year of passes."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

from some_forecast import some_forecast
from some_windows import FIRST, MS, WINDOW_S, some_windows

from autotune.guard import stored as guarded
from autotune.guard.past import Recording
from autotune.guard.session import Summary
from autotune.service import history
from autotune.service.history import PassRecord, Remembered
from autotune.sync_forecast import stored as forecasts

UUID = "ab" * 16
DEVICE = "/dev/md0"
OUTCOMES = ("unchanged", "unchanged", "kept", "adopted", "reverted", "failed")


def keep_sync(
    state: Path,
    began_s: float,
    windows: int = 300,
    ended: str = "the recovery is over",
    cut: bool = False,
    **changes: object,
) -> None:
    """A sync of so many windows, whose expected end comes nearer."""
    ceiling = None if "policy" in changes else 80 * MS
    recording = Recording(DEVICE, UUID, ceiling, changes.pop("policy", None))  # type: ignore[arg-type]
    whole_s = WINDOW_S * windows
    for number, window in enumerate(some_windows(windows, **changes)):
        left_s = whole_s - WINDOW_S * number
        known = {"left_s": left_s * 1.05, "left_low_s": left_s, "left_high_s": left_s * 1.3}
        if changes.get("left_s", 0.0) is None:
            known = {}
        recording.add(
            dataclasses.replace(
                window,
                time_s=began_s + WINDOW_S * number,
                share=(number + 1) / windows,
                **known,  # type: ignore[arg-type]
            )
        )
    finish_s = changes.get("finish_s")
    late_s = began_s + whole_s - finish_s if isinstance(finish_s, float) else None
    summary = Summary(
        *("recovery", whole_s, 1 << 40, windows, windows - 3, windows // 7, ended),
        ended.startswith("the ceiling"),
        *(finish_s, late_s),  # type: ignore[arg-type]
    )
    sync = recording.so_far(None if cut else summary)
    assert sync is not None
    guarded.keep(sync, state)


def some_passes(count: int) -> list[PassRecord]:
    """A pass a week, of all outcomes."""
    passes = []
    for number in range(count):
        outcome = OUTCOMES[number % len(OUTCOMES)]
        gain = None if outcome == "failed" else (1.2 + 0.01 * (number % 9), 1.1, 1.37)
        passes.append(
            PassRecord(
                at=datetime(2025, 12, 7, 2, 13, tzinfo=UTC) + timedelta(days=7 * number),
                outcome=outcome,
                reasons=("the array has another member",) if number % 5 == 3 else (),
                gain=gain,
                better=(1.08, 1.02, 1.14) if outcome == "adopted" else None,
                drift=1.0 - 0.003 * number,
                trials=4 + number % 3,
                seconds=410.0 + number,
                bytes_written=1 << 31,
            )
        )
    return passes


def store_array(state: Path, passes: int = 50) -> None:
    """All there is of one."""
    day = FIRST.time_s
    keep_sync(state, day, cut=True, windows=100)
    keep_sync(state, day + 1e5, policy="balanced", windows=20)
    keep_sync(state, day + 2e5, source="none", p99_ns=None, left_s=None, windows=50)
    finish_s = day + 3e5 + 90_000
    keep_sync(state, day + 3e5, finish_s=finish_s, needed_kib=3000.0, windows=17_000)
    forecasts.keep(dataclasses.replace(some_forecast(), uuid=UUID), state)
    remembered = Remembered(passes=tuple(some_passes(passes)))
    history.save(remembered, state, UUID)
