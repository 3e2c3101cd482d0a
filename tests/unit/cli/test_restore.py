"""`autotune restore` where some of what is left cannot be put back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fake_sysfs
import pytest

from autotune.cli import restore
from autotune.deploy import undo_all
from autotune.deploy.persisted import persisted_uuids
from autotune.errors import RefusalError, UsageError
from autotune.safety.locks import MEMORY
from autotune.system.array import Array, list_arrays
from autotune.system.disk_originals import noted_arrays
from autotune.system.sysfs import read


@pytest.fixture
def uuids() -> Iterator[list[str]]:
    """Of two arrays that there are not. The command leaves the files that are its locks."""
    found = [f"{number:032}" for number in (1, 2)]
    yield found
    for uuid in found:
        (MEMORY / f"array-{uuid}").unlink(missing_ok=True)


def has_profiles() -> bool:
    """Whether this machine has profiles in force, which `restore --all` would undo."""
    return bool(persisted_uuids() or noted_arrays(Path("/")))


@pytest.mark.skipif(os.geteuid() != 0, reason="a journal has to be root's")
def test_what_was_put_back_and_what_failed_are_one_document(
    tmp_path: Path, uuids: list[str]
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    for number, originals, mode in (
        (1, {}, 0o666),
        (2, {"/sys/block/md0/md/sync_speed_max": "system"}, 0o600),
    ):
        uuid = uuids[number - 1]
        head = {"kind": "open", "uuid": uuid, "device": f"/dev/md{number}", "boot": "x", "pid": 1}
        path = folder / f"{uuid}.jsonl"
        path.write_text(json.dumps({**head, "originals": originals}) + "\n")
        path.chmod(mode)
    command = [sys.executable, "-m", "autotune", "restore", "--json", "--state-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert "/dev/md2 (journal)" in document
    assert "Not everything could be put back" in document["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a record has to be root's")
@pytest.mark.skipif(has_profiles(), reason="it would undo the profiles of this machine")
def test_two_arrays_that_had_one_name_are_both_told_of(tmp_path: Path, uuids: list[str]) -> None:
    """One after the other was /dev/md0; what failed on the first one is no secret."""
    knob, boot = tmp_path / "knob", read(Path("/proc/sys/kernel/random/boot_id"))
    knob.write_text("4096")
    folder = tmp_path / "applied"
    folder.mkdir()
    for number, (file, text) in enumerate({"/proc/version": "other", str(knob): "256"}.items(), 1):
        uuid = uuids[number - 1]
        head = {"kind": "open", "uuid": uuid, "device": "/dev/md0", "boot": boot, "pid": 1}
        wrote = {"kind": "write", "path": file, "text": read(Path(file))}
        path = folder / f"{uuid}.jsonl"
        lines = {**head, "originals": {file: text}}, wrote, {"kind": "settled"}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        path.chmod(0o600)
    command = [sys.executable, "-m", "autotune", "restore", "--all", "--json", "--state-dir"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    assert {"/dev/md0 (applied)", f"/dev/md0 {uuids[1]} (applied)"} < document.keys()
    assert done.returncode == 1
    assert "/proc/version" in document["error"]
    assert knob.read_text().strip() == "256"


def test_who_cannot_see_what_is_left_is_not_told_that_nothing_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RefusalError, match="Only root"):
        restore.restore(state_dir=tmp_path)


def test_a_persisted_profile_that_cannot_be_read_keeps_nothing_else_from_going_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unreadable(array: Array, _state_dir: Path) -> list[str]:
        if array.name == "md0":
            raise UsageError('There is no setting "newer".')
        return ["somebody has set it"]

    machine = fake_sysfs.raid6(tmp_path)
    machine.array("md1", "raid6", ("sda", "sdb", "sdc", "sdd"), uuid="b" * 32)
    arrays = list_arrays(tmp_path)
    monkeypatch.setattr(undo_all, "record", unreadable)
    monkeypatch.setattr(undo_all, "persisted_uuids", lambda: [array.uuid for array in arrays])
    done, (why,) = undo_all.undo_profiles(arrays, True, tmp_path / "state")
    assert 'no setting "newer"' in why
    assert {name: each.foreign for name, each in restore._by_name(done).items()} == {
        "/dev/md1 (applied)": ["somebody has set it"]
    }
