"""What ends a run on account of its scratch file's filesystem."""

from pathlib import Path

from autotune.safety.scratch_watch import Footing, SameFile
from autotune.system.ground import Ground
from autotune.system.stack import Mount

MOST_BYTES = 1 << 62


def test_a_filesystem_that_others_have_filled_ends_the_run(tmp_path: Path) -> None:
    mount = Mount(1, tmp_path, "ext4", "md0", False)
    assert Footing(tmp_path, mount, "md0", Ground(), 1)._short() is None
    assert "nearly full" in str(Footing(tmp_path, mount, "md0", Ground(), MOST_BYTES)._short())


def test_another_file_under_the_name_of_the_scratch_file_ends_the_run(tmp_path: Path) -> None:
    file, theirs = tmp_path / "scratch", tmp_path / "theirs"
    file.touch()
    theirs.touch()
    look = SameFile(file)
    assert look() is None
    file.rename(tmp_path / "away")
    assert "is not the scratch file" in str(look())
    file.symlink_to(tmp_path / "away")
    assert "is not the scratch file" in str(look())
    file.unlink()
    theirs.rename(file)
    assert "is not the scratch file" in str(look())
