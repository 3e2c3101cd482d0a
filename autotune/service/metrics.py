"""Metrics for Prometheus, as a file that node_exporter's textfile collector reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from autotune.errors import AutotuneError

VERDICTS = ("better", "no difference", "worse")


@dataclass(frozen=True)
class ArrayMetrics:
    """What is known of one array. Ratios are 1.0 where nothing changed; `checked` is a time in
    seconds since 1970, 0 if it never was; `p99_s` and `ceilings_s` are by figure, in seconds."""

    device: str
    uuid: str
    profile: str
    as_profile: bool
    checked: float = 0.0
    gain: float = 1.0
    verdict: str = ""
    drift: float = 1.0
    p99_s: tuple[tuple[str, float], ...] = ()
    ceilings_s: tuple[tuple[str, float], ...] = ()


def write_metrics(path: Path, arrays: Iterable[ArrayMetrics]) -> None:
    """Write the file, whole or not at all. Raise AutotuneError if it cannot be written."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"autotune_{name}", text, ("device", "uuid", *labels), registry=registry)

    profile = gauge("profile_info", "The active profile.", "profile")
    as_profile = gauge("knobs_as_profile", "1 if every knob reads as the profile says.")
    checked = gauge("checked_timestamp_seconds", "When the profile was last checked.")
    gain = gauge("gain_ratio", "Objective with the profile over that without, as last measured.")
    verdict = gauge("verdict", "1 for the last verdict on the profile, else 0.", "verdict")
    drift = gauge("drift_ratio", "Objective as last measured over that when it was adopted.")
    p99 = gauge("p99_seconds", "The foreground's p99 in the phase, as last measured.", "figure")
    ceiling = gauge("p99_ceiling_seconds", "The ceiling of that p99.", "figure")
    for array in arrays:
        at = (array.device, array.uuid)
        if array.profile:
            profile.labels(*at, array.profile).set(1)
        as_profile.labels(*at).set(array.as_profile)
        checked.labels(*at).set(array.checked)
        if array.verdict:
            gain.labels(*at).set(array.gain)
            drift.labels(*at).set(array.drift)
            for each in VERDICTS:
                verdict.labels(*at, each).set(each == array.verdict)
        for name, seconds in array.p99_s:
            p99.labels(*at, name).set(seconds)
        for name, seconds in array.ceilings_s:
            ceiling.labels(*at, name).set(seconds)
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        raise AutotuneError(
            f"The metrics cannot be written to {path}: {error.strerror}; correct `textfile` in "
            "the configuration."
        ) from None
