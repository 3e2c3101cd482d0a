"""What goes wrong × what lies between the array and its filesystem, in the lab `faults.toml`.

`make faults` runs every cell; those marked as a sample are for `test_run.py`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_faults import FAULTS, MOUNT, endure, files, state
from volumes import make_ext4, make_group, make_snapshot, make_thin, make_volume, sh, used

__all__ = ["files", "state"]

STAGE = {"snapshot": "resync", "thin": "write"}
"""Nothing is written above a snapshot; on a thin pool, since the folder is named."""
MORE = {"snapshot": (), "thin": ("--scratch", str(MOUNT))}
LONGEST_S = {"snapshot": 4, "thin": 20}
"""A pool that hands out blocks for the first time may take seconds for a single fsync."""
# A volume in use keeps the array from being stopped.
CELLS = [(fault, above) for above in STAGE for fault in FAULTS if fault != "array stopped"]
SAMPLE = {("SIGKILL to the tuner", "snapshot"), ("SIGINT twice", "thin")}
POOL_MIB = 860
WRITTEN = 0.5
"""Of the pool, at most: the files, and what scratch files leave without discard."""


@pytest.fixture(scope="module", autouse=True)
def group(files: None) -> None:
    """Instead of the filesystem on the array itself."""
    sh("umount", MOUNT)
    make_group()


@pytest.fixture(scope="module")
def above(request: pytest.FixtureRequest) -> Iterator[str]:
    """A filesystem with files below what is named, on the array."""
    name: str = request.param
    if name == "snapshot":
        make_volume("home", 780)
    else:
        make_thin(POOL_MIB, "home")
    make_ext4("/dev/shelf/home")
    sh("mount", "/dev/shelf/home", MOUNT)
    (MOUNT / "large").write_bytes(bytes(32 << 20))
    if name == "snapshot":
        make_snapshot(60)
    yield name
    sh("umount", MOUNT)
    sh("lvremove", "-q", "-f", "shelf")


@pytest.mark.parametrize(
    ("fault", "above"),
    [pytest.param(*c, marks=pytest.mark.sample if c in SAMPLE else ()) for c in CELLS],
    indirect=["above"],
)
def test_nothing_is_left_behind_nor_destroyed(
    fault: str, above: str, state: Path, tmp_path: Path
) -> None:
    longest_s = LONGEST_S[above]
    print(endure(fault, STAGE[above], state, tmp_path, *MORE[above], longest_s=longest_s))
    subprocess.run(["sync"], check=True)
    if above == "snapshot":
        # "Invalid" once it has overflowed.
        blocks, total, *_ = map(int, used("shelf-backup").split("/"))
        assert blocks < total / 2
    else:
        blocks, total = map(int, used("shelf-pool-tpool").split("/"))
        assert blocks < total * WRITTEN
