"""Metrics for Prometheus, as a file that node_exporter's textfile collector reads."""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from autotune.errors import AutotuneError
from autotune.service.metrics_files import metrics_file, remove_earlier_names
from autotune.system.array import Array

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


def write_gauges(
    file: Path,
    kind: str,
    array: Array,
    gauges: Mapping[str, tuple[str, float | None]],
    action: str = "",
) -> None:
    """Write what a guard or a check (`kind`) knows of its array beside the `file` of all arrays,
    whole or not at all. `gauges`: what each means, and its value, by name; one that is None is left
    out. `action`: the sync that is under way, as people call it. Raise AutotuneError if the file
    cannot be written."""
    registry, at = CollectorRegistry(), (array.device, array.uuid)
    for name, (text, value) in gauges.items():
        gauge = Gauge(f"autotune_{kind}_{name}", text, ("device", "uuid"), registry=registry)
        if value is not None:
            gauge.labels(*at).set(value)
    if action:
        text, labels = "1, with what is under way.", ("device", "uuid", "action")
        info = Gauge(f"autotune_{kind}_sync_info", text, labels, registry=registry)
        info.labels(*at, action).set(1)
    _write(metrics_file(file, kind, array.device), registry)
    remove_earlier_names(file, kind, array.device, array.uuid)


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
