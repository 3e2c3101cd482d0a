"""fio's output as fio 3.33 gives it, whole, cut and broken; and its command line."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import MeasurementError
from autotune.measure.fio import Fio
from autotune.measure.fio_command import PART_BYTES, Job, Target, command
from autotune.measure.fio_output import MAX_OUTPUT_BYTES, Counters, Documents, parse
from autotune.measure.workload import MOST_USERS, Load, Probe

TARGET = Target(Path("/dev/md0"), 1 << 30)


def direction(requests: int = 0, bins: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "io_bytes": requests * 4096,
        "lat_ns": {"bins": bins} if bins else {"N": 0},
    }


def document(name: str = "probe", reads: int = 10, error: int = 0) -> dict[str, Any]:
    return {
        "fio version": "fio-3.33",
        "jobs": [
            {
                "jobname": name,
                "error": error,
                "job_runtime": 2000,
                "read": direction(reads, {"580": reads - 1, "612": 1}),
                "write": direction(),
            }
        ],
    }


def test_documents_are_cut_out_of_a_stream_that_arrives_in_any_pieces() -> None:
    text = f"{json.dumps(document())}\nfio: terminating on signal 2\n{json.dumps(document())}\n"
    for size in (1, 7, 1000):
        documents = Documents()
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        found = [d for piece in pieces for d in documents.feed(piece)]
        assert found == [document(), document()]


def test_a_document_becomes_counters_in_seconds_bytes_and_ns() -> None:
    counters = parse(document(reads=10))["probe"]
    assert counters == Counters(2.0, 40960, {580: 9, 612: 1}, {})


def test_processes_of_one_job_are_added_up() -> None:
    both = document()
    both["jobs"] *= 2
    assert parse(both)["probe"].requests == 20


def test_counters_subtract_to_what_happened_in_between() -> None:
    early, late = parse(document(reads=10))["probe"], parse(document(reads=25))["probe"]
    assert late.since(early) == Counters(0.0, 15 * 4096, {580: 15}, {})


def test_an_error_in_a_job_is_named() -> None:
    with pytest.raises(MeasurementError, match='job "probe": Input/output error'):
        parse(document(error=5))


@pytest.mark.parametrize(
    "broken", [{}, [], "x", {"jobs": [{}]}, {"jobs": [{**document()["jobs"][0], "error": "no"}]}]
)
def test_what_is_not_fios_is_a_broken_measurement(broken: object) -> None:
    with pytest.raises(MeasurementError):
        parse(broken)


def test_output_without_end_is_refused() -> None:
    documents = Documents()
    documents.feed("{" * MAX_OUTPUT_BYTES)
    with pytest.raises(MeasurementError, match="never ends"):
        documents.feed("{")


def test_fio_is_readonly_unless_a_job_writes() -> None:
    probe = Job("probe", Probe(rate_iops=50), TARGET)
    write = Job("load", Load(rw="write", block_kib=1024), TARGET)
    assert "--readonly" in command([probe], 10, 1)
    assert "--readonly" not in command([probe, write], 10, 1)


def test_every_job_has_its_own_file_size_and_rate() -> None:
    jobs = [
        Job("load", Load(rw="read", block_kib=1024, buffered=True), TARGET),
        Job("probe", Probe(rate_iops=50), Target(Path("/mnt/a;b#c:d/scratch"), 4096, 8192)),
    ]
    words = command(jobs, 10, 7)
    load, probe = words[words.index("--name=load") : words.index("--name=probe")], words[-20:]
    assert {"--filename=/dev/md0", "--direct=0", "--bs=1024k", "--randseed=8"} <= set(load)
    assert {"--filename=scratch", "--offset=8192", "--rate_iops=5", "--numjobs=10"} <= set(probe)


def test_the_users_of_a_probe_make_its_rate() -> None:
    for rate_iops in (*range(1, 400), 1000, 5000, 100_000):
        probe = Probe(rate_iops=rate_iops)
        assert abs(probe.users * probe.each_iops - rate_iops) <= max(1, 0.06 * rate_iops)
        assert probe.users <= MOST_USERS


@pytest.mark.parametrize(("percent", "writes"), [(1, 49), (30, 35), (99, 1), (100, 0), (0, 50)])
def test_a_probe_of_both_reads_and_writes(percent: int, writes: int) -> None:
    parts = Probe(rate_iops=50, read_percent=percent).parts
    assert [part.rate_iops if part else 0 for part in parts] == [50 - writes, writes]
    assert not (parts[0] and parts[0].writes)


def test_no_two_users_are_alike() -> None:
    """With fio's seed 0 all of them would be."""
    words = command([Job("probe", Probe(rate_iops=50), TARGET)], 10, 0)
    assert "--randseed=1" in words


def test_streams_have_parts_of_their_own() -> None:
    words = command([Job("load", Load(rw="write", block_kib=64, streams=3), TARGET)], 10, 1)
    assert {"--numjobs=3", "--size=357564416", "--offset_increment=357564416"} <= set(words)
    assert not any(word == f"--size={TARGET.size_bytes}" for word in words)


def test_what_is_held_open_is_written_to_whatever_its_name_leads_to(tmp_path: Path) -> None:
    """By the real fio: it opens its files anew in each phase."""
    held, name = tmp_path / "held", tmp_path / "name"
    held.write_bytes(b"h" * PART_BYTES)
    name.write_bytes(b"v" * PART_BYTES)
    with held.open("rb") as file:
        target = Target(name, PART_BYTES, descriptor=file.fileno())
        with Fio([Job("load", Load(rw="write", block_kib=64), target)], 5, 1) as fio:
            until = time.monotonic() + 20
            while not fio.written and time.monotonic() < until:
                fio.poll(1)
        assert fio.written
    assert name.read_bytes() == b"v" * PART_BYTES
    assert held.read_bytes() != b"h" * PART_BYTES
