"""The command line of fio for loads and probes, and where it has to be run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import RefusalError
from autotune.measure.workload import Load, Probe

NO_LIMIT: Mapping[str, int] = {}
PART_BYTES = 1 << 20
# Else fio has the kernel write out all of a filesystem on the device, and drop what is cached of
# its metadata, each time that it starts (filesetup.c; BLKFLSBUF).
DIRECT = ("--direct=1", "--invalidate=0")


@dataclass(frozen=True)
class Target:
    """Where a job reads or writes: `path`, from `offset_bytes`, over `size_bytes`. `descriptor`:
    one that this process has it open with; then it is found by that, whatever its name leads to
    later."""

    path: Path
    size_bytes: int
    offset_bytes: int = 0
    descriptor: int | None = None


@dataclass(frozen=True)
class Job:
    """A load, or a probe that either reads or writes, on a target. Jobs of one run have different
    names."""

    name: str
    does: Load | Probe
    target: Target

    def __post_init__(self) -> None:
        assert isinstance(self.does, Load) or not (self.does.reads and self.does.writes)

    @property
    def processes(self) -> int:
        """How many processes of fio do it."""
        return self.does.users if isinstance(self.does, Probe) else self.does.streams


def folder(jobs: Sequence[Job]) -> Path | None:
    """Where fio has to run to find the file that it writes; None if it needs none.

    fio cuts a name at ":", ";" and "#" (seen on 3.33), and would write to what is left of it. So
    it never hears in which folder the file is.
    """
    targets = (job.target for job in jobs if job.target.descriptor is None)
    return next((each.path.parent for each in targets if not _is_device(each.path)), None)


def descriptors(jobs: Sequence[Job]) -> tuple[int, ...]:
    """Those that fio has to inherit."""
    return tuple({d for job in jobs if (d := job.target.descriptor) is not None})


def _is_device(path: Path) -> bool:
    return path.is_relative_to("/dev")


def _name(target: Target) -> str:
    if target.descriptor is not None:
        return f"/proc/self/fd/{target.descriptor}"
    path = target.path
    name = str(path) if _is_device(path) else path.name
    if not re.fullmatch(r"[\w/.+!-]+", name, re.ASCII):
        raise RefusalError(
            f"fio would take {path} for something else, because of the characters in its name."
        )
    return name


def _arguments(job: Job) -> Iterator[str]:
    does, target = job.does, job.target
    yield f"--name={job.name}"
    yield f"--filename={_name(target)}"
    yield f"--offset={target.offset_bytes}"
    yield f"--bs={does.block_kib}k"
    # Else a load would be counted with the probe before it.
    yield "--new_group=1"
    yield f"--numjobs={job.processes}"
    if isinstance(does, Probe):
        yield f"--size={target.size_bytes}"
        yield "--rw=" + ("randwrite" if does.writes else "randread")
        yield f"--rate_iops={does.each_iops}"
        yield "--rate_process=poisson"
        yield "--ioengine=psync"
        # One in what fio prints.
        yield "--group_reporting=1"
        yield from DIRECT
        yield "--norandommap=1"
        return
    yield f"--rw={does.rw}"
    yield f"--rwmixread={does.read_percent}"
    if does.streams > 1 and not does.rw.startswith("rand"):
        # Each stream has a part of its own.
        part = target.size_bytes // does.streams // PART_BYTES * PART_BYTES
        yield f"--offset_increment={part}"
        yield f"--size={part}"
    else:
        yield f"--size={target.size_bytes}"
    if does.sync_every:
        yield f"--fsync={does.sync_every}"
    if does.rw.startswith("rand"):
        yield "--norandommap=1"
    if does.buffered:
        yield "--direct=0"
        yield "--ioengine=psync"
    else:
        yield from DIRECT
        yield "--ioengine=libaio"
        yield f"--iodepth={does.depth}"


def command(
    jobs: Sequence[Job], max_seconds: float, seed: int, most: Mapping[str, int] = NO_LIMIT
) -> tuple[str, ...]:
    """The fio command of these jobs, to be run in their `folder`. It gets `--readonly` unless one
    of them writes. `most`: the bytes that each process of a job may read and write before it ends
    by itself."""
    readonly = not any(job.does.writes for job in jobs)
    common = (
        # Whatever becomes of autotune, fio does not outlive it.
        *("setpriv", "--pdeathsig", "KILL"),
        "fio",
        *(("--readonly",) if readonly else ()),
        "--output-format=json+",
        "--status-interval=1",
        "--eta=never",
        # md lets a request wait before it takes it, as RAID 10 does for a sync: that is submission
        # latency to fio, which the default percentiles leave out.
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--allow_file_create=0",
        # As threads, all jobs are one process, and one signal reaches them all.
        "--thread=1",
    )
    # All users of a seed of 0 would be alike, and the first one of each seed without the second
    # option (init.c, td_fill_rand_seeds).
    per_job = (f"--runtime={int(max_seconds) + 60}", f"--randseed={seed + 1}", "--randrepeat=0")
    return common + tuple(
        a for job in jobs for a in (*_arguments(job), *_end(most.get(job.name)), *per_job)
    )


def _end(most: int | None) -> tuple[str, ...]:
    # fio respects io_size only if time_based is off (seen on 3.33), and then to the byte.
    return ("--time_based=1",) if most is None else ("--time_based=0", f"--io_size={most}")
