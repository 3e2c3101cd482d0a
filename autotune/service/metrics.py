"""Metrics for Prometheus, as a file that node_exporter's textfile collector reads."""

import contextlib
import math
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from autotune.errors import AutotuneError
from autotune.service.metrics_files import CHECK, GUARD, metrics_file, remove_earlier_names

VERDICTS = ("better", "no difference", "worse")


@dataclass(frozen=True)
class ArrayMetrics:
    """What is known of one array. Ratios are 1.0 where nothing changed; `gain_span` are the ends of
    the gain's 95 % interval; `checked` is a time in seconds since 1970, 0 if it never was; `p99_s`
    and `ceilings_s` are by figure, in seconds."""

    device: str
    uuid: str
    profile: str
    as_profile: bool
    checked: float = 0.0
    gain: float = 1.0
    gain_span: tuple[float, float] = (1.0, 1.0)
    verdict: str = ""
    drift: float = 1.0
    p99_s: tuple[tuple[str, float], ...] = ()
    ceilings_s: tuple[tuple[str, float], ...] = ()
    failed: bool = False


def write_metrics(path: Path, arrays: Iterable[ArrayMetrics]) -> None:
    """Write the file, whole or not at all. Raise AutotuneError if it cannot be written."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"autotune_{name}", text, ("device", "uuid", *labels), registry=registry)

    profile = gauge("profile_info", "The active profile.", "profile")
    as_profile = gauge("knobs_as_profile", "1 if every knob reads as the profile says.")
    failed = gauge("last_pass_failed", "1 if the newest pass of re-tuning failed.")
    checked = gauge("checked_timestamp_seconds", "When the profile was last checked.")
    gain = gauge("gain_ratio", "Objective with the profile over that without, as last measured.")
    gain_low = gauge("gain_low_ratio", "The lower end of the 95 % interval of that gain.")
    gain_high = gauge("gain_high_ratio", "The upper end of that interval.")
    verdict = gauge("verdict", "1 for the last verdict on the profile, else 0.", "verdict")
    drift = gauge("drift_ratio", "Objective as last measured over that when it was adopted.")
    p99 = gauge("p99_seconds", "The foreground's p99 in the phase, as last measured.", "figure")
    ceiling = gauge("p99_ceiling_seconds", "The ceiling of that p99.", "figure")
    for array in arrays:
        at = (array.device, array.uuid)
        if array.profile:
            profile.labels(*at, array.profile).set(1)
            as_profile.labels(*at).set(array.as_profile)
        failed.labels(*at).set(array.failed)
        if array.verdict:
            checked.labels(*at).set(array.checked)
            gain.labels(*at).set(array.gain)
            for end, value in zip((gain_low, gain_high), array.gain_span, strict=True):
                end.labels(*at).set(value)
            drift.labels(*at).set(array.drift)
            for each in VERDICTS:
                verdict.labels(*at, each).set(each == array.verdict)
        for name, seconds in array.p99_s:
            p99.labels(*at, name).set(seconds)
        for name, seconds in array.ceilings_s:
            ceiling.labels(*at, name).set(seconds)
    _write(path, registry)


@dataclass(frozen=True)
class GuardMetrics:
    """What a guard sees of one array. `p99_s` is None while nobody is there; `active`: a sync is
    under way; `out_of_reach`: the ceiling is, in this sync or the last one, if that was let go."""

    device: str
    uuid: str
    ceiling_s: float
    active: bool
    p99_s: float | None = None
    sync_bytes_per_s: float = 0.0
    out_of_reach: bool = False
    left_s: tuple[float | None, float | None, float | None] = (None, None, None)
    """As it goes now, if all users leave, if they stay."""
    finish_s: float | None = None
    """The deadline, in seconds since the epoch."""
    impossible: bool = False
    action: str = ""
    """What the sync is, as people call it; "" if none is under way."""
    done_share: float | None = None
    held_bytes_per_s: float | None = None


def write_guard_metrics(file: Path, seen: GuardMetrics) -> None:
    """Write the array's file beside the `file` of all arrays, whole or not at all. Raise
    AutotuneError if it cannot be written."""
    registry, at = CollectorRegistry(), (seen.device, seen.uuid)
    gauges = {
        "active": ("1 while a sync is held to the ceiling.", float(seen.active)),
        "p99_seconds": ("The foreground's p99 of the last half minute.", seen.p99_s),
        "p99_ceiling_seconds": (
            "The ceiling of that p99.",
            seen.ceiling_s if math.isfinite(seen.ceiling_s) else None,
        ),
        "sync_bytes_per_second": ("How fast each member is synced.", seen.sync_bytes_per_s),
        "held_bytes_per_second": ("What each member's sync is held to.", seen.held_bytes_per_s),
        "done_ratio": ("How much of the sync is done, 0 to 1.", seen.done_share),
        "left_seconds": ("The time left at the speeds of the last minute.", seen.left_s[0]),
        "left_low_seconds": ("The time left if all users leave.", seen.left_s[1]),
        "left_high_seconds": ("The time left if all users stay.", seen.left_s[2]),
        "finish_timestamp_seconds": ("When the sync is to be over.", seen.finish_s),
        "impossible": (
            "1 if the deadline cannot be met, or not together with the ceiling.",
            float(seen.impossible),
        ),
        "ceiling_out_of_reach": (
            "1 if the slowest sync does not hold the ceiling.",
            float(seen.out_of_reach),
        ),
    }
    info = Gauge(
        "autotune_guard_sync_info",
        "1, with what is under way.",
        ("device", "uuid", "action"),
        registry=registry,
    )
    if seen.action:
        info.labels(*at, seen.action).set(1)
    for name, (text, value) in gauges.items():
        gauge = Gauge(f"autotune_guard_{name}", text, ("device", "uuid"), registry=registry)
        if value is not None:
            gauge.labels(*at).set(value)
    _write(metrics_file(file, GUARD, seen.device), registry)
    remove_earlier_names(file, GUARD, seen.device, seen.uuid)


@dataclass(frozen=True)
class CheckMetrics:
    """What is known of the checks of one array: of the newest one `share` (0 to 1) and what
    differs; `complete` is when the newest one that read all was over, in seconds since 1970."""

    device: str
    uuid: str
    active: bool
    share: float
    mismatch_sectors: int
    complete: float | None = None
    p99_s: float | None = None


def write_check_metrics(file: Path, seen: CheckMetrics) -> None:
    """Write the array's file beside the `file` of all arrays, whole or not at all. Raise
    AutotuneError if it cannot be written."""
    registry, at = CollectorRegistry(), (seen.device, seen.uuid)
    gauges = {
        "active": ("1 while a part of a check is under way.", float(seen.active)),
        "progress_ratio": ("How much of the newest check is done, 0 to 1.", seen.share),
        "mismatch_sectors": ("What differs, by the newest check.", float(seen.mismatch_sectors)),
        "complete_timestamp_seconds": ("When the newest whole check was over.", seen.complete),
        "p99_seconds": ("The foreground's p99 of the last half minute.", seen.p99_s),
    }
    for name, (text, value) in gauges.items():
        gauge = Gauge(f"autotune_check_{name}", text, ("device", "uuid"), registry=registry)
        if value is not None:
            gauge.labels(*at).set(value)
    _write(metrics_file(file, CHECK, seen.device), registry)
    remove_earlier_names(file, CHECK, seen.device, seen.uuid)


def _write(path: Path, registry: CollectorRegistry) -> None:
    try:
        # A name that nobody can foresee: others may write to the folder, and put a link there.
        descriptor, part = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(generate_latest(registry))
                os.fchmod(descriptor, 0o644)
            Path(part).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(part).unlink()
            raise
    except OSError as error:
        raise AutotuneError(
            f"The metrics cannot be written to {path}: {error.strerror}; correct `textfile` in "
            "the configuration."
        ) from None
