"""How udevd is asked, with an udevadm that answers as systemd's does."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy import udevd
from autotune.system.array import find_array

SETTLE = "Failed to connect to udev daemon, ignoring: Resource temporarily unavailable"
RELOAD = "Failed to send reload request: Resource temporarily unavailable"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with an udevd that hears only the third time."""
    root = fake_sysfs.raid6(tmp_path).root
    control = root / "run/udev/control"
    control.parent.mkdir(parents=True)
    control.touch()
    said = tmp_path / "said"
    program = tmp_path / "bin/udevadm"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
echo "$2" >>{said}
echo "Found cgroup2, and much else" >&2
[ $(grep -c "$2" {said}) -gt "${{BUSY:-2}}" ] && exit
case $2 in
settle) echo "{SETTLE}" >&2 ;;
control) echo "{RELOAD}" >&2; exit 1 ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return root


def told(root: Path) -> list[str]:
    """Tell it of an array; return what was said."""
    said: list[str] = []
    udevd.tell_udev(find_array("md0", root), said.append, root)
    return said


def test_an_udevd_that_is_busy_with_others_is_asked_again(root: Path, tmp_path: Path) -> None:
    said = told(root)
    assert said == []
    asked = (tmp_path / "said").read_text().split()
    assert asked == ["control"] * 3 + ["trigger"] + ["settle"] * 3


def test_one_that_stays_busy_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUSY", "1000")
    monkeypatch.setattr(udevd, "_UDEV_S", 0.3)
    said = told(root)
    assert len(said) == 1
    assert said[0].startswith(f"udev could not be told ({RELOAD}): ")


def test_one_that_does_not_answer_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is stopped. What udevadm had said of other things is nothing to anybody."""
    program = root / "bin/udevadm"
    program.write_text("#!/bin/sh\necho SELinux >&2\nexec sleep 60\n")
    monkeypatch.setattr(udevd, "_UDEV_S", 0.2)
    (said,) = told(root)
    assert said.startswith("udev could not be told (udevadm had no answer for 0 s): ")
