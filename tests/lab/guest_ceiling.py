"""A latency ceiling during a resync, on raid5-hdd; `test_run.py` runs this there."""

import dataclasses
import math
from pathlib import Path
from statistics import fmean

from guest import Follower, knob_files

from autotune.knobs.sync_speed import SyncSpeedMax, SyncSpeedMin
from autotune.measure.phase import measure
from autotune.measure.workload import load_workload
from autotune.measure.write_budget import Written
from autotune.problem.ceilings import parse_ceiling
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.safety.apply import apply
from autotune.store import TrialRecord
from autotune.tuning.preparation import Options
from autotune.tuning.prepare import prepare
from autotune.tuning.run import run
from autotune.tuning.session import session

RESYNC = """
name = "resync"
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 80 }
min_seconds = 10
max_seconds = 14
"""
KNOBS = (SyncSpeedMin(), SyncSpeedMax())


class Telling(Follower):
    """Says what each trial showed."""

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        figures = {name: f"{e.value:.3g}±{e.spread:.2f}" for name, e in record.figures.items()}
        print(record.role, dict(record.requested), figures, record.reason)


def measured(options: Options, setting: Setting, state: Path, seeds: range) -> tuple[float, float]:
    """The rate (bytes/s) and p99 (ns) of a resync under a setting: means over some seeds."""
    preparation = prepare(options, state)
    (phase,) = preparation.phases
    with session(preparation, state, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        apply(preparation.array, KNOBS, setting, bench.journal)
        figures = [measure(phase, bench, seed).figures for seed in seeds]
    rates, latencies = (
        [math.log(f[f"resync.{name}"].value) for f in figures] for name in ("throughput", "p99")
    )
    return math.exp(fmean(rates)), math.exp(fmean(latencies))


def test_the_winner_holds_its_ceiling_when_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "resync.toml"
    path.write_text(RESYNC)
    before = knob_files()
    options = Options("/dev/md0", load_workload(str(path)), trials=10, time_s=1800, knobs=KNOBS)
    slow: Setting = {"sync_speed_min": 1000, "sync_speed_max": 5000}
    fast: Setting = {"sync_speed_min": 1000, "sync_speed_max": 200_000}
    slow_rate, slow_p99 = measured(options, slow, tmp_path, range(100, 103))
    fast_rate, fast_p99 = measured(options, fast, tmp_path, range(100, 103))
    print(f"5000: {slow_rate / 1e6:.1f} MB/s, p99 {slow_p99 / 1e6:.1f} ms")
    print(f"200000: {fast_rate / 1e6:.1f} MB/s, p99 {fast_p99 / 1e6:.1f} ms")
    ceiling_ns = math.sqrt(slow_p99 * fast_p99)
    assert slow_p99 * 1.1 < ceiling_ns < fast_p99 / 1.1
    limit = parse_ceiling(f"resync={ceiling_ns / 1e6:.3f}ms")
    asked = dataclasses.replace(options, ceilings=(limit,), careful=True)
    done = run(asked, tmp_path, Telling())
    assert done.result.keep, done.result.reason
    rate, p99 = measured(options, done.result.winner, tmp_path, range(200, 203))
    print(f"{dict(done.result.winner)}: {rate / 1e6:.1f} MB/s, p99 {p99 / 1e6:.1f} ms")
    assert p99 <= ceiling_ns
    assert rate > slow_rate
    assert knob_files() == before
