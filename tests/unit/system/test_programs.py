"""Programs that are missing, fail or hang end nothing."""

import os
from pathlib import Path

import pytest

from autotune.system import programs
from autotune.system.programs import UnseenError, find, mdadm, output


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_what_a_program_prints() -> None:
    assert output("coreutils", "echo", "hello") == "hello\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("nonsense-tool",), r"needs xfsprogs \(`apt install xfsprogs`"),
        (("false",), "false failed"),
        (("sleep", "60"), "sleep did not answer"),
    ],
)
def test_one_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], reason: str
) -> None:
    monkeypatch.setattr(programs, "TIMEOUT_S", 0.2)
    with pytest.raises(UnseenError, match=reason):
        output("xfsprogs", *command)


def test_one_that_is_half_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "mdadm", "#!/nowhere/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnseenError, match=r"mdadm cannot be started \(No such file"):
        mdadm("--detail", "md0")


@pytest.mark.parametrize("path", ["/usr/bin:/bin", "", None])
def test_the_administrators_folders_need_not_be_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    there = program(tmp_path / "sbin", "mdadm", "#!/bin/sh\necho MD_NAME=a=b\necho; echo $LC_ALL\n")
    monkeypatch.setattr(programs, "ADMINISTRATORS", (str(tmp_path / "sbin"),))
    monkeypatch.chdir(program(tmp_path / "here", "mdadm", "#!/bin/false\n").parent)
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    assert find("mdadm") == str(there)
    assert find("sh") is not None
    assert mdadm("--detail", "md0") == {"MD_NAME": "a=b"}
    assert os.environ.get("PATH") == path
