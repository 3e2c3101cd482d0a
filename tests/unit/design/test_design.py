"""What a design refuses before it writes anything, and an array that cannot be made."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from some_design import BALANCED

from autotune.design import design as design_module
from autotune.design import workspace
from autotune.design.blank_disks import Disk
from autotune.design.design import Options, design, make
from autotune.design.shape import Shape
from autotune.design.workspace import Workspace
from autotune.errors import MeasurementError, RestoreError, UsageError
from autotune.measure.workload import load_workload
from autotune.safety import own_array
from autotune.safety.guardian import Guardian
from autotune.safety.own_array import Removal
from autotune.system.blockdev import Media

DISKS = tuple(Disk(f"/dev/sd{n}", f"sd{n}", 4 << 40, Media.HDD, n, "") for n in "bcdef")


class BegunError(Exception):
    """It would have begun to write."""


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_slices(*_: object) -> None:
        raise BegunError

    monkeypatch.setattr(design_module, "find_disks", lambda *_: DISKS)
    monkeypatch.setattr(design_module, "program_missing", lambda: "")
    monkeypatch.setattr(design_module, "find", lambda _: "/sbin/mdadm")
    monkeypatch.setattr(design_module, "last_free", lambda: "md127")
    monkeypatch.setattr(design_module, "on_slices", on_slices)


def asked(time_s: float, workload: str = "balanced") -> Options:
    names = tuple(disk.given for disk in DISKS)
    return Options(names, names, load_workload(workload), time_s=time_s)


@pytest.mark.parametrize("time_s", [1.0, 60.0, 300.0])
def test_too_short_a_time_is_refused_before_anything_is_written(
    tmp_path: object, time_s: float
) -> None:
    with pytest.raises(UsageError, match=r"nothing could be tried and proven.*at the least"):
        design(asked(time_s), tmp_path, None)  # type: ignore[arg-type]


def test_the_least_time_that_is_said_is_enough_to_begin(tmp_path: object) -> None:
    trials_s = 7 * sum(phase.expected_seconds + phase.growth_s for phase in BALANCED.phases)
    filling_s = workspace.LARGEST_BYTES[Media.HDD] / 150e6
    with pytest.raises(UsageError, match=r"takes 10 min at the least\. Allow more \(--time\)"):
        design(asked(trials_s + filling_s - 1), tmp_path, None)  # type: ignore[arg-type]
    for enough_s in (600.0, 1800.0):
        with pytest.raises(BegunError):
            design(asked(enough_s), tmp_path, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("left", [(), ("/dev/md0 stays, since it is in use",)])
def test_what_is_left_of_an_array_that_could_not_be_made_is_said(
    left: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_device: str, _uuid: str) -> None:
        raise MeasurementError("The first bytes of /dev/md0 cannot be cleared: busy.")

    monkeypatch.setattr(design_module, "lock", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(design_module, "first_free", lambda: "md0")
    monkeypatch.setattr(design_module, "create", lambda *_: None)
    monkeypatch.setattr(design_module.array_head, "clear", refuse)
    monkeypatch.setattr(own_array, "remove_left", lambda *_: Removal(["/dev/md0"], list(left)))
    # The guardian would look at this machine's disks.
    monkeypatch.setattr(Guardian, "dismiss", lambda self: self._process.kill())
    winner = SimpleNamespace(shape=Shape("raid6", "left-symmetric", 64, "bitmap"))
    found = SimpleNamespace(
        workspace=Workspace(DISKS, "c" * 32, "md127", 64 << 20), device="/dev/md0", winner=winner
    )
    said = r"busy\. Not everything .* /dev/md0 stays, since it is in use\." if left else r"busy\."
    with pytest.raises(RestoreError if left else MeasurementError, match=said):
        make(cast(Any, found), tmp_path)
