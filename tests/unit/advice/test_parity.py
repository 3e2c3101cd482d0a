"""How parity is computed."""

from pathlib import Path

import pytest
from advice_looks import MD, found, nvmes

from autotune.advice import parity
from autotune.suggested import set_by_hand


@pytest.mark.parametrize(
    ("level", "processors", "threads", "named"),
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
    threads: str,
    named: bool,
) -> None:
    monkeypatch.setattr(parity.os, "cpu_count", lambda: processors)
    machine = nvmes(tmp_path, level)
    machine.put(f"{MD}/group_thread_cnt", threads)
    assert [finding.name for finding in found(machine)] == ["one-thread"] * named


def test_writes_without_a_copy_are_a_risk(tmp_path: Path) -> None:
    machine = nvmes(tmp_path, "raid5")
    machine.put(f"{MD}/skip_copy", "1")
    (finding,) = found(machine)
    assert (finding.name, finding.commands) == (
        "skip-copy",
        (set_by_hand(tmp_path / "sys/block/md0/md/skip_copy", 0),),
    )
