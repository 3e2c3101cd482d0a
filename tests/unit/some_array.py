"""What is stored of an array, made up: syncs under guard, checks, a forecast, a year of passes,
runs, advice."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import synthetic_run
from some_forecast import point, some_forecast
from some_windows import FIRST, MS, WINDOW_S, some_windows

from autotune.advice import stored as advices
from autotune.advice.finding import NEW_IS_LOST, Advice, Finding, NotLookedAt
from autotune.checking import stored as checked
from autotune.checking.record import CheckHistory, CheckRecord, Felt, Part
from autotune.guard import stored as guarded
from autotune.guard.guarded_sync import Recording
from autotune.guard.session import Summary
from autotune.service import history
from autotune.service.history import PassRecord, Remembered
from autotune.store.database import Store
from autotune.sync_forecast import stored as forecasts

UUID = "ab" * 16
DEVICE = "/dev/md0"
EXAMPLE = Path(__file__).parents[2] / "examples/profile.json"
CHECK_SECTORS = 8_000_000_000
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


def some_checks(count: int) -> CheckHistory:
    """A check a month, each in some nights; one of them found mismatches, the newest stands."""
    records = []
    for number in range(count):
        began = datetime(2025, 12, 1, 1, 0, tzinfo=UTC) + timedelta(days=30 * number)
        nights = 1 + number % 4
        ends = [CHECK_SECTORS * (night + 1) // nights for night in range(nights)]
        parts = tuple(
            Part(
                start=start,
                end=end,
                began=began + timedelta(days=night),
                seconds=14_400.0 - 1000 * number / nights,
                mismatches=136 * (number == 3 and night == 0),
                ended="" if end == CHECK_SECTORS else "its window closes",
            )
            for night, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        )
        felt = Felt()
        for window in range(0 if number == 1 else 40):
            felt = felt.seen((31 + window + number) * MS, window > 36)
        stands = number == count - 1
        parts = parts[:2] if stands else parts
        records.append(
            CheckRecord(
                began=began,
                array="raid6 of 5",
                members=("a", "b"),
                size=CHECK_SECTORS,
                parts=parts,
                pieces=len(parts),
                felt=felt,
                ended=None if stands else began + timedelta(days=nights),
                ceiling_ns=70 * MS if number % 5 else None,
            )
        )
    return CheckHistory(device=DEVICE, checks=tuple(records))


def some_advice() -> Advice:
    """Two findings, one that is silenced, one that was not looked at."""
    stripe = Finding(
        "ext4-stripe",
        "The ext4 on /srv knows no stripe; the array's is 192 KiB.",
        "It cannot lay large writes on whole stripes, so md has to read before it can compute the "
        "parity of more of them.",
        "mke2fs(8), stripe_width",
        ("tune2fs -E stride=16,stripe_width=48 /dev/md0",),
        True,
        "It takes effect at the next mount.",
    )
    disk = Finding(
        *("shared-disk", "vda is a member of md0 and md1.", "Syncs wait for each other.", "md(4)"),
        *((), True, "Nothing but another disk helps."),
    )
    slow = dataclasses.replace(
        disk,
        name="slow-member",
        seen="vdd reads at 0.60 of the others.",
        commands=("mdadm /dev/md0 --add NEW", "mdadm /dev/md0 --replace /dev/vdd --with NEW"),
        live=False,
        risk=NEW_IS_LOST,
    )
    missing = NotLookedAt("lvm-alignment", "needs lvm2 (`apt install lvm2`)")
    return Advice(DEVICE, (stripe, slow), (disk,), (missing,))


def store_runs(state: Path) -> None:
    """One that was kept, one of a given setting, one that failed, and one that was killed."""
    store, profile = Store(state), json.loads(EXAMPLE.read_text())
    searched = {**synthetic_run.problem(), "given": ""}
    given = {**searched, "strategy": "given", "given": "theirs"}
    gain = {"ratio": 1.01, "low": 0.98, "high": 1.04, "conclusion": "no difference"}
    kept = store.start_run(UUID, DEVICE, "print", searched)
    store.finish_run(kept, "done", "better beyond noise", profile)
    kept = store.start_run(UUID, DEVICE, "print", given)
    outcome = "no worse than the original settings"
    store.finish_run(kept, "done", outcome, profile, {"gain": gain})
    failed = store.start_run(UUID, DEVICE, "print", searched)
    store.finish_run(failed, "failed", "fio ended with an error.")
    store.start_run(UUID, DEVICE, "print", searched)


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
    checked.save(some_checks(12), checked.path_of(state, UUID))
    looked = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    advices.keep(advices.Kept(UUID, looked, some_advice()), state)
    store_runs(state)


def store_little(state: Path) -> None:
    """One of each, with names that are long and figures that are few or far apart."""
    keep_sync(state, FIRST.time_s, windows=1)
    forecasts.keep(dataclasses.replace(some_forecast((point(0, 12),)), uuid=UUID), state)
    history.save(Remembered(passes=tuple(some_passes(1))), state, UUID)
    (check,) = some_checks(1).checks
    felt = Felt().seen(31 * MS, False).seen(9e9, True)
    checked.save(
        CheckHistory(device=DEVICE, checks=(check.changed(felt=felt),)),
        checked.path_of(state, UUID),
    )
    advice = some_advice()
    path = "/srv/" + "a-folder-with-a-long-name/" * 8
    long = dataclasses.replace(
        advice.findings[0], seen=f"On {path} it is.", commands=(f"mount -o remount {path}",)
    )
    advice = dataclasses.replace(advice, findings=(long,))
    advices.keep(advices.Kept(UUID, datetime(2026, 11, 20, tzinfo=UTC), advice), state)
