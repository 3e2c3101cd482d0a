"""Run apart, as a script (`separate_process`): what touches the filesystem of a scratch file.

A write to a filesystem may never return, and then not even SIGKILL ends who made it. It works in
the present folder, so that nothing mounted over it since makes a difference. It prints the bytes
written so far, a number a line, or "removed"; at a failure, "error" and its number, and exits
with 1.
"""

import contextlib
import fcntl
import os
import struct
import sys
from pathlib import Path

BLOCK_BYTES = 1 << 20
SYNC_BYTES = 32 << 20
BTRFS_IOC_SUBVOL_CREATE = 0x5000940E
"""linux/btrfs.h"""
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NOCOW_FL = 0x80086601, 0x40086602, 0x00800000
"""linux/fs.h"""


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def fill(folder: str, name: str, size: int, fstype: str) -> None:
    """Make a folder of the owner's alone, and in it a file full of random bytes."""
    os.umask(0o077)
    if fstype == "btrfs":
        # A snapshot of what is around it leaves out a subvolume, so it keeps nothing of the file.
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        # Python takes so long a one only if it could be changed.
        argument = bytearray(struct.pack("q4088s", 0, folder.encode()))
        fcntl.ioctl(here, BTRFS_IOC_SUBVOL_CREATE, argument)
    else:
        Path(folder).mkdir(0o700)
    # Not by its name, where root of a container whose volume this is may put a link.
    ours = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    # A folder with the set-group-ID bit hands its group on, whose quota is not ours to use.
    os.fchown(ours, os.geteuid(), os.getegid())
    os.fchmod(ours, 0o700)
    block = os.urandom(BLOCK_BYTES)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=ours)
    if fstype == "btrfs":
        _write_in_place(file)
    for done in range(BLOCK_BYTES, size + 1, BLOCK_BYTES):
        left = block
        while left:
            left = left[os.write(file, left) :]
        _say(str(done))
        if done % SYNC_BYTES == 0:
            os.fdatasync(file)
    os.fsync(file)


def _write_in_place(file: int) -> None:
    """See to it that overwriting an empty file takes no new blocks, as on other filesystems. Else
    it would come to take twice its size."""
    flags = bytearray(8)
    fcntl.ioctl(file, FS_IOC_GETFLAGS, flags)
    # The kernel knows only the first half of what it calls a long.
    flags[:4] = struct.pack("I", struct.unpack("I", flags[:4])[0] | FS_NOCOW_FL)
    fcntl.ioctl(file, FS_IOC_SETFLAGS, flags)


def remove(folder: str, name: str) -> None:
    """Remove the file and its folder, which has to hold nothing else, and see to it that they do
    not come back: a filesystem that breaks forgets what it has not written yet. A link in its
    place, which leads to files of others, is an error."""
    with contextlib.suppress(FileNotFoundError):
        ours = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=ours)
        Path(folder).rmdir()
    os.fsync(os.open(".", os.O_RDONLY | os.O_DIRECTORY))


def main(words: list[str]) -> int:
    try:
        if words[0] == "fill":
            fill(words[1], words[2], int(words[3]), words[4])
        else:
            remove(words[1], words[2])
            _say("removed")
    except OSError as error:
        _say(f"error {error.errno}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
