"""How fast an array's members read in sequence: what sync speeds are measured against."""

from collections.abc import Callable
from pathlib import Path

from autotune.errors import MeasurementError
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.workload import Load
from autotune.system.array import Array

RAMP_S = 1.0
SECONDS = 2.0
TIMEOUT_S = 15.0


def member_kib_s(array: Array, watch: Callable[[], None] = lambda: None) -> int | None:
    """What the slowest member reads at its beginning, in KiB/s; None if that cannot be told."""
    return min(member_speeds(array, watch).values(), default=0) or None


def member_speeds(array: Array, watch: Callable[[], None] = lambda: None) -> dict[str, int]:
    """What each member reads at its beginning, in KiB/s, by name; empty if that cannot be told, as
    while a sync is under way.

    All members at once, for that is how a sync reads them. Nothing is written: fio runs with
    --readonly. `watch` is called once a second.
    """
    # No spare, which may sleep, nor a write journal.
    away = {"faulty", "spare", "journal"}
    members = [m for m in array.members if not away & {*m.state.split(",")} and m.size_bytes]
    if array.now().sync_action != "idle" or not members:
        return {}
    load = Load(rw="read", block_kib=1024, depth=4)
    jobs = [
        Job(f"m{n}", load, Target(Path("/dev") / m.name.replace("!", "/"), m.size_bytes))
        for n, m in enumerate(members)
    ]
    first: dict[str, Counters] = {}
    try:
        with Fio(jobs, TIMEOUT_S, 0) as fio:
            while True:
                watch()
                counters = fio.poll(TIMEOUT_S)
                if counters is None:
                    return {}
                if len(counters) < len(jobs):
                    continue
                if not first and all(c.seconds >= RAMP_S for c in counters.values()):
                    first = dict(counters)
                if first and all(
                    counters[n].seconds - c.seconds >= SECONDS for n, c in first.items()
                ):
                    read = {n: _kib_s(counters[n].since(c)) for n, c in first.items()}
                    return {m.name: read[f"m{n}"] for n, m in enumerate(members)}
    except MeasurementError:
        return {}


def _kib_s(done: Counters) -> int:
    return int(done.bytes / done.seconds / 1024)
