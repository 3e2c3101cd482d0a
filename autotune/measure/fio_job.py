"""An existing fio job file as a workload. Its text may come from a stranger. Pure.

fio never sees the file: of each option only a number or a word out of a list is taken over, and
what is not in the lists below is refused by name. Options: fio 3.33's HOWTO.
"""

import re
from collections.abc import Mapping
from typing import Any

from autotune.errors import UsageError
from autotune.untrusted import MAX_LINE

SUFFIX = ".fio"
MAX_SECTIONS = 15
MAX_NAME = 24
MIN_SECONDS, MAX_SECONDS = 6, 20
CACHED_KIB = 32 * 1024
"""Buffered writes that are never synced would measure memory: they are, after so much."""

_CARRIED_OVER = {
    "rw": "rw", "readwrite": "rw", "bs": "bs", "blocksize": "bs", "iodepth": "iodepth",
    "numjobs": "numjobs", "direct": "direct", "buffered": "buffered", "rwmixread": "rwmixread",
    "rwmixwrite": "rwmixwrite", "fsync": "fsync", "fdatasync": "fsync",
    "rate_iops": "rate_iops", "ioengine": "ioengine",
}  # fmt: skip
"""Options that say what the load is, and the one name that each has here."""

_DECIDED_HERE = """
    allow_mounted_write allrandrepeat clat_percentiles create_fsync create_on_open
    create_serialize description directory disk_util end_fsync fallocate file_service_type
    filename filename_format filesize group_reporting gtod_reduce invalidate io_size
    lat_percentiles loops name new_group norandommap nrfiles offset offset_increment
    openfiles overwrite percentile_list ramp_time randrepeat randseed refill_buffers runtime size
    slat_percentiles startdelay stonewall thread time_based unified_rw_reporting unlink
    wait_for_previous
    """.split()  # noqa: SIM905
"""Where, how much and for how long: autotune's own business, so these are passed over."""

_REFUSED = {
    "exec_prerun": "runs a command",
    "exec_postrun": "runs a command",
    "read_iolog": "replays a recording",
    "replay_redirect": "replays a recording",
    "write_iolog": "writes files elsewhere",
    "write_bw_log": "writes files elsewhere",
    "write_lat_log": "writes files elsewhere",
    "write_hist_log": "writes files elsewhere",
    "write_iops_log": "writes files elsewhere",
    "include": "reads other files",
    "opendir": "reads other files",
    "verify": "checks data that it would have to write itself",
}

_QUEUED = ("libaio", "io_uring", "posixaio")
_ONE_BY_ONE = ("psync", "sync", "pvsync", "pvsync2", "vsync", "mmap")
_DIRECTIONS = ("read", "write", "randread", "randwrite", "randrw")
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20,
          "mb": 1 << 20, "mib": 1 << 20}  # fmt: skip

Section = Mapping[str, str]


def job_document(text: str, source: str) -> dict[str, Any]:
    """A job file as what a workload's TOML would hold: each section a phase of weight 1, measured
    one after the other. A random section with `rate_iops` is the foreground: it becomes the probe
    of every phase, and the phase "idle" on its own.

    Raise UsageError naming `source` and the option that has no place here. Numbers may still be
    out of a workload's ranges.
    """
    try:
        sections = _sections(text)
        probes = [(name, s) for name, s in sections if "rate_iops" in s]
        if len(probes) > 1:
            raise ValueError(f"[{probes[0][0]}] and [{probes[1][0]}] both have rate_iops; keep one")
        probe = _probe(*probes[0]) if probes else None
        names = _names([name for name, s in sections if "rate_iops" not in s])
        loads = [_load(name, s) for name, s in sections if "rate_iops" not in s]
        if not loads:
            raise ValueError(
                "every job has rate_iops, which makes it the foreground whose latency is held; "
                "add one without, whose throughput is to grow"
            )
        phases: list[dict[str, Any]] = [{"name": "idle", "probe": probe}] if probe else []
        phases += [
            {"name": name, "weight": 1, "load": load, "probe": probe}
            for name, load in zip(names, loads, strict=True)
        ]
        times = {"min_seconds": MIN_SECONDS, "max_seconds": MAX_SECONDS}
    except ValueError as error:
        raise UsageError(f'The fio job file "{source}" cannot be used: {error}.') from None
    return {
        "name": "fio-job",
        "description": (
            "From a fio job file. Its sections are measured one after the other; where, how much "
            "and for how long (filename, size, runtime and their like) is autotune's to decide, "
            "and buffered writes are synced now and then."
        ),
        "phases": [phase | times for phase in phases],
    }


def _sections(text: str) -> list[tuple[str, Section]]:
    """The job sections in order, each with what [global] said before it. Raise ValueError."""
    shared: dict[str, str] = {}
    found: list[tuple[str, Section]] = []
    current: dict[str, str] | None = None
    where = ""
    for line in text.splitlines():
        if len(line) > MAX_LINE:
            raise ValueError(f"a line is longer than {MAX_LINE} characters")
        bare = re.split("[;#]", line, maxsplit=1)[0].strip()
        if not bare:
            continue
        if bare.startswith("["):
            if not bare.endswith("]") or not bare[1:-1].strip():
                raise ValueError("a section's name is not closed by ]")
            where = re.sub(r"[^\w.:/ -]", "?", bare[1:-1].strip(), flags=re.ASCII)[:MAX_NAME]
            current = shared
            if where != "global":
                current = dict(shared)
                found.append((where, current))
            continue
        if current is None:
            word = bare.split()[0]
            what = "include" if word == "include" else "an option"
            raise ValueError(f"it has {what} before its first [section]; remove it")
        option, given, value = (part.strip() for part in bare.partition("="))
        key = _known(option, where)
        if key:
            current[key] = value if given else "1"
    if not found:
        raise ValueError("it has no job section")
    if len(found) > MAX_SECTIONS:
        raise ValueError(f"it has more than {MAX_SECTIONS} job sections; split it")
    return found


def _known(option: str, where: str) -> str | None:
    """The option's name here; None if it is autotune's to decide. Raise ValueError otherwise."""
    if option in _CARRIED_OVER:
        return _CARRIED_OVER[option]
    if option in _DECIDED_HERE:
        return None
    if option.split()[:1] == ["include"]:
        option = "include"
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,40}", option):
        raise ValueError(f"[{where}] has a line that is no option of fio; remove it")
    kind = option.partition("_")[0]
    reason = _REFUSED.get(option) or {
        "verify": _REFUSED["verify"],
        "trim": "discards data",
        "log": "is about logs, and autotune keeps its own",
    }.get(kind, "autotune cannot carry over")
    raise ValueError(f"[{where}] sets {option}, which {reason}; remove it")


def _load(where: str, section: Section) -> dict[str, Any]:
    rw = _direction(where, section)
    buffered = _buffered(where, section)
    load: dict[str, Any] = {"rw": rw, "block_kib": _block_kib(where, section)}
    load["streams"] = _number(where, section, "numjobs", 1)
    load["buffered"] = buffered
    # Only with these engines and past the page cache does fio keep several requests in flight.
    queued = _engine(where, section) in _QUEUED and not buffered
    load["depth"] = _number(where, section, "iodepth", 1) if queued else 1
    load["read_percent"] = _read_percent(where, section)
    if rw not in ("read", "randread"):
        cached = max(1, min(1024, CACHED_KIB // load["block_kib"])) if buffered else 0
        load["sync_every"] = _number(where, section, "fsync", 0) or cached
    return load


def _probe(where: str, section: Section) -> dict[str, Any]:
    rw = _direction(where, section)
    if not rw.startswith("rand"):
        raise ValueError(f"[{where}] has rate_iops with rw={rw}; only a random job can be a probe")
    _engine(where, section)
    percent = {"randread": 100, "randwrite": 0, "randrw": _read_percent(where, section)}[rw]
    jobs = _number(where, section, "numjobs", 1)
    return {
        "rate_iops": jobs * _number(where, section, "rate_iops", 0),
        "block_kib": _block_kib(where, section),
        "read_percent": percent,
    }


def _direction(where: str, section: Section) -> str:
    rw = section.get("rw", "read")
    if rw in _DIRECTIONS:
        return rw
    if rw.startswith(("trim", "randtrim")):
        raise ValueError(f"[{where}] has a rw that discards data; use {', '.join(_DIRECTIONS)}")
    raise ValueError(f"[{where}] has a rw that is not one of {', '.join(_DIRECTIONS)}")


def _engine(where: str, section: Section) -> str:
    engine = section.get("ioengine", "psync")
    if engine not in (*_QUEUED, *_ONE_BY_ONE):
        raise ValueError(
            f"[{where}] has an ioengine that is not one of {', '.join((*_QUEUED, *_ONE_BY_ONE))}"
        )
    return engine


def _buffered(where: str, section: Section) -> bool:
    if "direct" in section:
        return _number(where, section, "direct", 0) == 0
    return _number(where, section, "buffered", 1) != 0


def _read_percent(where: str, section: Section) -> int:
    if "rwmixread" not in section and "rwmixwrite" in section:
        return 100 - _number(where, section, "rwmixwrite", 50)
    return _number(where, section, "rwmixread", 50)


def _number(where: str, section: Section, option: str, default: int) -> int:
    text = section.get(option, str(default))
    if not re.fullmatch(r"[0-9]{1,7}", text):
        raise ValueError(f"[{where}] has a {option} that is not a plain whole number")
    return int(text)


def _block_kib(where: str, section: Section) -> int:
    found = re.fullmatch(r"([0-9]{1,9}) ?([a-z]{0,3})", section.get("bs", "4k").lower())
    size = int(found[1]) * _UNITS.get(found[2], 0) if found else 0
    if not size or size % 1024:
        raise ValueError(f"[{where}] has a bs that is not one size in whole KiB")
    return size // 1024


def _names(given: list[str]) -> list[str]:
    """Names for phases, each once: "Random Read" becomes random-read, a second one random-read-2.
    "idle" is the probe's own phase."""
    taken = {"idle"}
    names = []
    for text in given:
        name = stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "job"
        if not stem[0].isalpha():
            name = stem = f"job-{stem}"
        count = 1
        while name in taken:
            count += 1
            name = f"{stem}-{count}"
        taken.add(name)
        names.append(name)
    return names
