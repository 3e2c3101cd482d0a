"""Who comes to a disk while its slice is filled; with real disks: `tests/lab/guest_design.py`."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autotune.design import slices as slices_module
from autotune.design.slices import Slices
from autotune.errors import StoppedError


def test_whoever_comes_to_a_disk_ends_its_filling(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["sdb", "sdc"]
    disks = [SimpleNamespace(name=n, hardware=n) for n in names]
    comes: list[str] = []

    def newcomers(disk: SimpleNamespace) -> Callable[[], str | None]:
        return lambda: "dd has it open for writing" if disk.name in comes else None

    def fill(_disks: object, _start: int, _size: int, look: Callable[[], None], _: object) -> None:
        look()
        comes.append("sdc")
        look()
        pytest.fail("the filling went on")

    monkeypatch.setattr(slices_module, "Newcomers", newcomers)
    monkeypatch.setattr(slices_module, "fill", fill)
    monkeypatch.setattr(slices_module, "look_at_each_again", lambda _disks: None)
    journal = SimpleNamespace(making=lambda _disks: None)
    made = Slices(
        cast(Any, SimpleNamespace(disks=disks, hardware={}, slice_bytes=64 << 20)),
        cast(Any, SimpleNamespace(journal=journal, lost="")),
        cast(Any, SimpleNamespace(going=lambda: True)),
    )
    with pytest.raises(StoppedError, match=r"^Stopped: dd has it open for writing\. What .* lost"):
        made.prepare(lambda _share: None)
    assert made.written.total == 0
