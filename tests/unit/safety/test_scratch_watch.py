"""What ends a run on account of its scratch file's filesystem."""

from pathlib import Path

from autotune.safety.scratch_watch import Footing
from autotune.system.scratch_space import Ground
from autotune.system.stack import Mount

MOST_BYTES = 1 << 62


def test_a_filesystem_that_others_have_filled_ends_the_run(tmp_path: Path) -> None:
    mount = Mount(1, tmp_path, "ext4", "md0", False)
    assert Footing(tmp_path, mount, "md0", Ground(), 1)._short() is None
    assert "nearly full" in str(Footing(tmp_path, mount, "md0", Ground(), MOST_BYTES)._short())
