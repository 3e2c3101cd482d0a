"""What an exported script has set is not taken for the original."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy.exported_script import RECORDS, refuse_over
from autotune.deploy.status import status
from autotune.errors import RefusalError
from autotune.system.array import find_array


@pytest.mark.parametrize(
    ("own", "device", "renewed", "refused"),
    [
        (True, "array", False, True),
        (True, "array", True, False),
        (True, "sys/block/sda", False, True),
        (False, "sys/block/sda", False, True),
        (False, "sys/block/sda", True, False),
        (False, "sys/block/sdz", False, False),
        (False, "array", False, False),
    ],
)
def test_it_is_refused_where_the_script_has_set_it(
    tmp_path: Path, own: bool, device: str, renewed: bool, refused: bool
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.disk("sdz")
    array = find_array("md0", tmp_path)
    folder = array.block if device == "array" else tmp_path / device
    number = folder.stat().st_ino + renewed
    shown = device if device == "array" else str(folder)
    record = tmp_path / RECORDS / (array.uuid if own else "a" * 32)
    record.parent.mkdir(parents=True)
    record.write_text(f"{shown} {number} queue/scheduler none\nname - - /dev/md7\n")
    (record.parent / "lock").touch()
    notes = [text for text in status(array, tmp_path / "state").notes if "exported script" in text]
    assert bool(notes) == refused
    if not refused:
        refuse_over(array)
        return
    with pytest.raises(RefusalError, match="with `undo /dev/md7`"):
        refuse_over(array)
