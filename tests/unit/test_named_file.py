"""Files that a person names to be written."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.errors import AutotuneError
from autotune.named_file import save


def test_a_device_stays_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.symlink_to("/dev/null")
    save(path, "a report")
    assert path.is_char_device()
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("what was there before")
    save(path, "new")
    assert path.read_text() == "new"


def test_a_link_leads_to_the_file_which_keeps_its_mode_and_owner(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("what was there before")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1, 1)
    before = path.stat()
    link.symlink_to(path)
    save(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(AutotuneError, match="is a link to a file that is not there"):
        save(link, "new")
    assert link.is_symlink()


def test_what_holds_no_text_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AutotuneError, match=f"{tmp_path} is no file that can be replaced"):
        save(tmp_path, "a report")


def test_a_full_disk_is_told_with_the_files_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="'/dev/full'"):
        save(Path("/dev/full"), "a report")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"'{tmp_path}/report'"):
        save(tmp_path / "report", "a report")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_nothing_is_saved_where_somebody_elses_link_leads(tmp_path: Path) -> None:
    """As for a report, whose name anybody can foresee."""
    (tmp_path / "victim").write_text("root's")
    link = tmp_path / "autotune-md0.html"
    link.symlink_to("victim")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(AutotuneError, match="is a link that somebody else has made"):
        save(link, "a report")
    assert (tmp_path / "victim").read_text() == "root's"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_nor_where_a_link_of_our_own_leads_to_theirs(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("root's")
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.symlink_to("victim")
    os.chown(theirs, 65534, 65534, follow_symlinks=False)
    link.symlink_to("theirs")
    with pytest.raises(AutotuneError, match="theirs is a link that somebody else has made"):
        save(link, "a report")
    assert (tmp_path / "victim").read_text() == "root's"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_nor_in_a_folder_that_theirs_leads_to(tmp_path: Path) -> None:
    (tmp_path / "roots").mkdir()
    out = tmp_path / "out"
    out.symlink_to("roots")
    os.chown(out, 65534, 65534, follow_symlinks=False)
    for name in ("new", "old"):
        (tmp_path / "roots/old").write_text("root's")
        with pytest.raises(AutotuneError, match="out is a link that somebody else has made"):
            save(out / name, "a report")
    assert [path.name for path in (tmp_path / "roots").iterdir()] == ["old"]
    assert (tmp_path / "roots/old").read_text() == "root's"


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        save(tmp_path / "link", "a report")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_the_kernel_links_is_written_to(name: str) -> None:
    code = "import sys; from pathlib import Path; from autotune.named_file import save; "
    code += "save(Path(sys.argv[1]), 'it')"
    words = [sys.executable, "-c", code, name]
    assert subprocess.run(words, check=True, capture_output=True).stdout == b"it"


def _swaps(at: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int) -> None:
    """At such a call of a function of `os`, somebody puts a link to root's in the place of `at`."""
    real: Callable[..., object] = getattr(os, name)
    calls = 0

    def swapping(*args: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == call:
            at.rename(at.with_name("aside"))
            at.symlink_to(at.with_name("roots"))
        return real(*args, **more)

    monkeypatch.setattr(os, name, swapping)


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Once the folder was opened: its owner may do with its name what they like."""
    for folder in ("roots", "out"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "old").write_text(f"in {folder}")
    _swaps(tmp_path / "out", monkeypatch, "fsync", 1)
    save(tmp_path / "out" / name, "a report")
    assert {path.name: path.read_text() for path in (tmp_path / "roots").iterdir()} == {
        "old": "in roots"
    }
    assert (tmp_path / "aside" / name).read_text() == "a report"


def test_a_pipe_that_is_swapped_for_a_link_meanwhile_is_still_what_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    (tmp_path / "roots").write_text("root's")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    # One look at each part of the way, and one at what is there.
    _swaps(pipe, monkeypatch, "fstat", len(pipe.parts))
    save(pipe, "a report")
    assert os.read(reader, 100) == b"a report"
    os.close(reader)
    assert (tmp_path / "roots").read_text() == "root's"


def test_a_file_behind_standard_output_keeps_what_it_has(tmp_path: Path) -> None:
    out = tmp_path / "log"
    out.write_text("before\n")
    code = "from pathlib import Path; from autotune.named_file import save; "
    code += "save(Path('/dev/stdout'), 'it')"
    with out.open("a") as file:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=file)
    assert out.read_text() == "before\nit"


def test_folders_that_are_missing_are_made(tmp_path: Path) -> None:
    save(tmp_path / "a/b/new", "it", folder_mode=0o700)
    assert (tmp_path / "a/b/new").read_text() == "it"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "c/new", "it")
