"""What a run will cost, before anything is measured: its time, its writes, what users will feel.

Figures are upper bounds from what disks of a kind do at best.
"""

from dataclasses import dataclass

from autotune.measure.settling import LOAD_RAMP_S
from autotune.measure.workload import START_S, Load, Phase
from autotune.stats.sequential import ERRORS, MOST_PAIRS
from autotune.system.array import PARITY, Array, Media
from autotune.system.scratch_space import scratch_bytes
from autotune.tuning.long_load import GROWS, long_phases, reserved_seconds
from autotune.tuning.preparation import BASELINE_EVERY, BASELINE_TRIALS, DOUBTS, Preparation

STREAM = {Media.HDD: 200e6, Media.SSD: 500e6, Media.NVME: 2500e6}
"""Bytes a second that a usual member takes at best, one after the other."""
_RANDOM = {Media.HDD: 200, Media.SSD: 30_000, Media.NVME: 200_000}
"""Small requests a second."""
_FLUSHES = {Media.HDD: 100, Media.SSD: 2_000, Media.NVME: 20_000}
"""Flushes a second of one process that waits for each."""


@dataclass(frozen=True)
class RunCost:
    """`trial_s` is the time of one trial in which every phase is measured, `loaded_s` the part of
    it in which the disks are kept busy. `trials`: at most, those of the original settings and of
    the proof among them. `seconds`: of the whole run at most. `long_s`: how long one long load
    lasts, 0 if there is none. `written_bytes`: to the array, at most, with the `scratch_bytes` that
    the file takes. `member_bytes`: of that, with copies or parity, to each member, and `worn` what
    share of its size that is. `rate`: what one member is taken to write in bytes a second."""

    trial_s: float
    loaded_s: float
    trials: int
    seconds: float
    long_s: float
    scratch_bytes: int
    written_bytes: int
    member_bytes: int
    worn: float
    rate: float


def run_cost(preparation: Preparation) -> RunCost:
    """What the run will take at most."""
    options, array, phases = preparation.options, preparation.array, preparation.phases
    trial_s = sum(phase.expected_seconds for phase in phases)
    # One for nothing, since the first touch of everything is slower.
    trials = 1 + BASELINE_TRIALS + options.trials + options.trials // BASELINE_EVERY
    trials += DOUBTS + len(ERRORS) * 2 * MOST_PAIRS
    long = long_phases(preparation, {GROWS: 0}, phases) if _grows(preparation) else []
    # Of both sides, and once more the other way round if the winner looks slower.
    longs = len(ERRORS) * 4 if reserved_seconds(preparation, {GROWS: 0}, phases) else 2
    most_s = trials * sum(phase.max_seconds + START_S for phase in phases)
    most_s += longs * sum(phase.max_seconds for phase in long)
    if _grows(preparation) and not preparation.live:
        most_s += max(phase.growth_s for phase in phases)
    seconds = min(options.time_s, most_s)
    trials = max(1, min(trials, int(seconds / trial_s)))
    long_s = min(longs * sum(phase.max_seconds for phase in long), seconds)
    scratch = 0
    if preparation.scratch is not None:
        scratch = scratch_bytes(preparation.scratch, preparation.underlying)
    written = float(scratch)
    for phase in phases:
        load_s = phase.expected_seconds - START_S + LOAD_RAMP_S
        written += (seconds - long_s) / trial_s * load_s * _rate(phase, array)
    for phase in long:
        written += long_s / len(long) * _rate(phase, array)
    if options.write_budget is not None:
        written = min(written, options.write_budget)
    member = written / _data_members(array)
    smallest = min((each.size_bytes for each in array.members), default=0)
    return RunCost(
        trial_s=trial_s,
        loaded_s=sum(phase.expected_seconds for phase in phases if phase.load or phase.check),
        trials=trials,
        seconds=seconds,
        long_s=max((phase.max_seconds for phase in long), default=0.0),
        scratch_bytes=scratch,
        written_bytes=int(written),
        member_bytes=int(member),
        worn=member / smallest if smallest else 0.0,
        rate=STREAM[array.media],
    )


def _grows(preparation: Preparation) -> bool:
    return any(knob.name == GROWS for knob in preparation.knobs)


def _data_members(array: Array) -> float:
    """The members whose worth of data the array takes at once; RAID 10 with two copies."""
    if array.level == "raid1":
        return 1.0
    if array.level == "raid10":
        return max(array.raid_disks / 2, 1.0)
    return float(max(array.raid_disks - PARITY.get(array.level, 0), 1))


def _rate(phase: Phase, array: Array) -> float:
    """Bytes a second that a phase writes to the array at best."""
    rate = 0.0
    if phase.load is not None and phase.load.writes:
        rate += _load_rate(phase.load, array)
    if phase.probe is not None:
        share = 1 - phase.probe.read_percent / 100
        rate += phase.probe.rate_iops * phase.probe.block_kib * 1024 * share
    return rate


def _load_rate(load: Load, array: Array) -> float:
    media, block = array.media, load.block_kib * 1024
    rate = STREAM[media] * _data_members(array)
    if load.rw.startswith("rand"):
        rate = min(rate, _RANDOM[media] * _data_members(array) * block)
    if load.sync_every:
        rate = min(rate, load.streams * load.sync_every * block * _FLUSHES[media])
    return rate * (1 - load.read_percent / 100) if load.rw == "randrw" else rate
