"""What mdadm is answered; with the real one: `tests/lab/guest_design.py`."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.design import creation
from autotune.design.creation import create
from autotune.design.shape import Shape
from autotune.errors import InfeasibleError, RefusalError

SHAPE = Shape("raid5", "left-symmetric", 64, "bitmap")
SIZE = "mdadm: largest drive (/dev/sdb) exceeds size (176128K) by more than 1%"
EXT4 = "mdadm: /dev/sdc appears to contain an ext2fs file system"
ASK = """
printf 'Continue creating array? ' >&2
read answer
[ "$answer" = y ] || { echo 'mdadm: create aborted.' >&2; exit 1; }
"""
Mdadm = Callable[[str], None]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the looks at the disks find, one after the other; "" or nothing: they are blank."""
    found: list[str] = []

    def look(_disks: object) -> None:
        if text := found.pop(0) if found else "":
            raise RefusalError(text)

    monkeypatch.setattr(creation, "look_at_all_again", look)
    return found


@pytest.fixture
def made(tmp_path: Path, looks: list[str]) -> Path:
    """What an mdadm of ours writes when it makes an array."""
    return tmp_path / "made"


@pytest.fixture
def mdadm(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Mdadm:
    """Return a function that makes an mdadm which does this first."""

    def write(script: str) -> None:
        program = tmp_path / "mdadm"
        program.write_text(f'#!/bin/sh\n{script}\necho "$@" > {made}\n')
        program.chmod(0o755)
        monkeypatch.setattr(creation, "find", lambda _name: str(program))

    return write


def make() -> None:
    disks = [SimpleNamespace(device=f"/dev/sd{letter}") for letter in "bcd"]
    create("/dev/md127", SHAPE, disks, ["--assume-clean"])  # type: ignore[arg-type]


@pytest.mark.parametrize("script", ["", f"echo '{SIZE}' >&2\n{ASK}"])
def test_an_array_is_made_of_blank_disks_and_only_a_part_of_each_is_no_matter(
    script: str, mdadm: Mdadm, made: Path
) -> None:
    mdadm(script)
    make()
    words = made.read_text().split()
    assert words[:2] == ["--create", "/dev/md127"]
    assert words[-4:] == ["--assume-clean", "/dev/sdb", "/dev/sdc", "/dev/sdd"]
    # With it mdadm would write whatever it finds.
    assert "--run" not in words


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (f"echo '{EXT4}' >&2; echo '{SIZE}' >&2\n{ASK}", "/dev/sdc appears to contain an ext2fs"),
        ("printf 'Shall a bitmap be added [y/N]? ' >&2; read x; exit 1", "cannot answer: Shall"),
    ],
)
def test_what_mdadm_finds_or_asks_else_ends_it(
    script: str, found: str, mdadm: Mdadm, made: Path
) -> None:
    mdadm(script)
    with pytest.raises(RefusalError, match=found):
        make()
    assert not made.exists()


@pytest.mark.parametrize("blank", [0, 1])
def test_what_comes_on_a_disk_before_mdadm_goes_on_ends_it(
    blank: int, mdadm: Mdadm, made: Path, looks: list[str]
) -> None:
    looks += [*[""] * blank, "/dev/sdd is not written to: it has a signature of xfs."]
    mdadm(f"echo '{SIZE}' >&2\n{ASK}")
    with pytest.raises(RefusalError, match="a signature of xfs"):
        make()
    assert not made.exists()


def test_what_mdadm_does_not_make_is_said_in_its_words(mdadm: Mdadm, made: Path) -> None:
    mdadm("echo 'mdadm: RUN_ARRAY failed: Invalid argument' >&2; exit 1")
    with pytest.raises(InfeasibleError, match="RUN_ARRAY failed: Invalid argument"):
        make()


def test_an_mdadm_that_hangs_is_ended(
    mdadm: Mdadm, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CREATE_S", 0.2)
    mdadm("exec sleep 60")
    with pytest.raises(RefusalError, match="did not make the array within"):
        make()
