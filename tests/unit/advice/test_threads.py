"""How many threads compute parity."""

from pathlib import Path

import pytest
from advice_looks import MD, found, nvmes

from autotune.advice import threads


@pytest.mark.parametrize(
    ("level", "processors", "threads_set", "named"),
    [
        ("raid5", 8, "0", True),
        ("raid5", 2, "0", False),
        ("raid5", 8, "4", False),
        ("raid10", 8, "0", False),
    ],
)
def test_one_thread_for_fast_disks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    processors: int,
    threads_set: str,
    named: bool,
) -> None:
    monkeypatch.setattr(threads.os, "cpu_count", lambda: processors)
    machine = nvmes(tmp_path, level)
    machine.put(f"{MD}/group_thread_cnt", threads_set)
    assert [finding.name for finding in found(machine)] == ["one-thread"] * named
