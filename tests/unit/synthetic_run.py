"""Runs as the store holds them, made up: one knob for writes, one for the sync."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import Status
from autotune.store import RunRecord, TrialRecord

START = datetime(2026, 1, 1, tzinfo=UTC)
BASELINE = {"stripe_cache_size": 256, "sync_speed_max": 200000}
PHASES = ("idle", "write", "resync")
MB, MS = 1e6, 1e6


def figure(name: str, weight: float = 0.0, ceiling: float | None = None) -> dict[str, Any]:
    phase, _, quantity = name.partition(".")
    kind = "throughput" if quantity == "throughput" else "latency"
    return {"name": name, "phase": phase, "kind": kind, "weight": weight, "ceiling": ceiling}


def problem(asked: tuple[dict[str, Any], ...] = (), **ceilings: float) -> dict[str, Any]:
    """A stored problem; `ceilings` are resolved ones, as idle=, write= and resync= in ns."""
    return {
        "array": {
            "name": "md0", "level": "raid6", "members": 5, "chunk_kib": 64,
            "media": "hdd", "kernel": "6.1", "uuid": "",
        },
        "workload": {"name": "balanced"},
        "strategy": "random",
        "ram_budget_bytes": 1 << 30,
        "ceilings": list(asked),
        "baseline": BASELINE,
        "knobs": {
            "stripe_cache_size": {
                "choices": [256, 1024, 4096],
                "ram_bytes": [10, 40, 160],
                "moves": ["write.throughput", "write.p99", "resync.throughput", "resync.p99"],
            },
            "sync_speed_max": {
                "choices": [5000, 200000],
                "ram_bytes": [0, 0],
                "moves": ["resync.throughput", "resync.p99"],
            },
        },
        "figures": [
            figure("idle.p99", ceiling=ceilings.get("idle")),
            figure("write.throughput", 1.0),
            figure("write.p99", ceiling=ceilings.get("write")),
            figure("resync.throughput", 1.0),
            figure("resync.p99", ceiling=ceilings.get("resync")),
        ],
    }  # fmt: skip


def run(
    state: str = "interrupted",
    document: dict[str, Any] | None = None,
    profile: dict[str, Any] | None = None,
) -> RunRecord:
    document = document or problem()
    return RunRecord(
        3, "u", "/dev/md0", "print", START, None, state, "", document, profile, 0
    )  # fmt: skip


def figures(write: float, write_ms: float, sync: float, sync_ms: float) -> dict[str, Estimate]:
    """Throughputs in MB/s, p99s in ms."""
    return {
        "idle.p99": Estimate(10 * MS, 0.02),
        "write.throughput": Estimate(write * MB, 0.02),
        "write.p99": Estimate(write_ms * MS, 0.03),
        "resync.throughput": Estimate(sync * MB, 0.02),
        "resync.p99": Estimate(sync_ms * MS, 0.03),
    }


def trial(
    number: int,
    role: str,
    changes: Setting,
    shown: Mapping[str, Estimate],
    measured: tuple[str, ...] = PHASES,
    status: Status = Status.COMPLETE,
) -> TrialRecord:
    setting = {**BASELINE, **changes}
    started = START + timedelta(seconds=20 * number)
    return TrialRecord(
        number, role, started, 15.0, status, "", setting, setting, dict(shown), measured
    )  # fmt: skip


def baseline(number: int) -> TrialRecord:
    return trial(number, "baseline", {}, figures(100, 30, 100, 40))
