"""Valid documents of every kind that is parsed, and what Hypothesis makes of them."""

import json
import math
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

JOB = {
    "jobname": "load",
    "error": 0,
    "job_runtime": 1000,
    "read": {"io_bytes": 8192, "lat_ns": {"bins": {"580": 1, "612": 1}}},
    "write": {"io_bytes": 0, "lat_ns": {"N": 0}},
}
FIO = {"fio version": "fio-3.33", "jobs": [JOB]}
FIGURE = {"before": 1, "after": 2, "ratio": 2, "low": 1, "high": 3, "conclusion": "better"}
PROFILE = {
    "schema_version": 1,
    "name": "md0",
    "created": "2026-01-01T00:00:00Z",
    "proven_on": {"level": "raid6", "members": 5, "chunk_kib": 64, "media": "hdd", "kernel": "6"},
    "workload": "balanced",
    "knobs": {
        **{"stripe_cache_size": 4096, "scheduler": "bfq", "read_ahead_kb": 4096},
        **{"nr_requests": 128, "sync_speed_max": 200_000},
    },
    "before": {"stripe_cache_size": 256, "scheduler": "none"},
    "ram_bytes": 1,
    "ram_budget_bytes": 2,
    "evidence": {
        **{"gain": 1.5, "low": 1.4, "high": 1.6, "trials": 9, "seconds": 9},
        "figures": {"write.throughput": FIGURE},
    },
}
WORKLOAD: dict[str, Any] = {
    "name": "own",
    "ceilings": ["resync=20ms"],
    "phases": [
        {"name": "write", "weight": 1, "load": {"rw": "write", "block_kib": 64}},
        {"name": "resync", "weight": 2, "check": True, "probe": {"rate_iops": 50}},
    ],
}
STARTING_POINT = {
    "schema_version": 1,
    "name": "own",
    "levels": ["raid6"],
    "media": ["hdd"],
    "knobs": {"stripe_cache_size": {"value": 1024, "source": "https://example.org/"}},
}
SCENARIO = {
    "summary": "own",
    "disks": [{"kind": "ssd", "count": 3}, {"kind": "hdd", "count": 1, "rpm": 5400}],
    "arrays": [{"name": "md0", "level": "raid1", "members": 2}],
    "filesystem": {"array": "md0", "kind": "ext4", "mount": "/mnt/md0"},
}
JOB_FILE = """[global]
ioengine=libaio
direct=1
[random read]
rw=randrw
bs=4k
iodepth=16
rwmixread=70
[foreground]
rw=randread
rate_iops=50
"""
MDSTAT = """Personalities : [raid6]
md0 : active raid6 sde[4] sdd[3] sdc[2] sdb[1] sda[0]
      390144 blocks super 1.2 level 6, 64k chunk, algorithm 2 [5/5] [UUUUU]
      [=====>...............]  check = 27.7% (36352/130048) finish=0.0min speed=36352K/sec

unused devices: <none>
"""
HEAD = {"uuid": "u", "device": "/dev/md0", "boot": "b", "pid": 1, "originals": {"/a": "1"}}

anything = st.text(st.characters(exclude_categories=()), max_size=200)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-(10**30), 2**63, 10**400, math.nan, math.inf, -math.inf, 1e308, -0.0]),
    st.floats(),
    anything,
    st.sampled_from(["", "hdd", "write", "1.5x", "20ms", "9" * 5000, "\0", "\ud800", "\x1b[2J"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=12,
)
splinters = st.sampled_from(
    ["{", "}", "[", "]", '"', "\\", "=", ".", ",", "#", ";", "\n", "\0", "\x1b", "-", "%", "(", "x",
     "nan", "inf", "1e999", "0x", "'''", '"""', "[[", "9" * 400, "9" * 5000, "[" * 3000, "²", "٣",
     "\\ud800", "\ufeff", "\u2028"]
)  # fmt: skip


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    for key, below in [*inner, *(enumerate(value) if isinstance(value, list) else ())]:
        yield from _paths(below, (*path, key))


@st.composite
def altered(draw: st.DrawFn, valid: dict[str, Any]) -> Any:
    """A valid document with up to three things in it replaced, removed or added."""
    document = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from([p for p in _paths(document) if p] or [("x",)]))
        parent = document
        for step in way:
            parent = parent[step]
        if draw(st.booleans()):
            parent[last] = draw(values)
        elif isinstance(parent, dict) and draw(st.booleans()):
            parent[draw(anything)] = draw(values)
        else:
            parent.pop(last, None) if isinstance(parent, dict) else parent.pop(last)
    return document


@st.composite
def spliced(draw: st.DrawFn, valid: str) -> str:
    """A valid text with pieces cut out, doubled, or strange ones put in."""
    text = valid
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        put = draw(st.one_of(splinters, anything, st.just(text[start:end] * 2)))
        text = text[:start] + put + text[end if draw(st.booleans()) else start :]
    return text


def toml(value: Any) -> str:
    """A value in TOML, as far as it has one."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return json.dumps(value)


def toml_document(value: Any) -> str:
    if not isinstance(value, dict):
        return toml(value)
    return "\n".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items())
