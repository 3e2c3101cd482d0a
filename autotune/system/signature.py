"""What is on a device: a filesystem, a partition table, or another signature."""

import io
import os
import signal
import subprocess
from pathlib import Path

from autotune.system.programs import find
from autotune.untrusted import plain

BLKID_TIMEOUT_S = 30
NOTHING_FOUND, AMBIVALENT = 2, 8
EDGE_BYTES = 4 << 20
"""At both ends of a device all signatures lie within so much. blkid ends at a sector that cannot be
read as it does where there is nothing (seen with 2.38.1), so all of this is read here, too."""
BCACHEFS_AT = 4096 + 24
BCACHEFS = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
"""`BCHFS_MAGIC` in a superblock in sector 8 (kernel fs/bcachefs/bcachefs_format.h, 6.7)."""
DM_MAGIC_AT = 32
DM_MAGIC = {0o6142003: "cache", 27022010: "thin", 2126579579: "era", 0x8AF27F64: "clone"}
"""`SUPERBLOCK_MAGIC`, a little-endian 64-bit number in the first sector (kernel
drivers/md/dm-cache-metadata.c, dm-thin-metadata.c, dm-era-target.c, dm-clone-metadata.c)."""
GPT = b"EFI PART"
"""The start of a GPT's header; its copy is in the last sector (UEFI 2.10, 5.3.2)."""


def signature(device: str) -> str | None:
    """What is on a raw device, as a clause that begins with "it" or a program's name ("it has a
    partition table (gpt)"). The same if that cannot be seen, with the reason. None only if all was
    read and nothing found."""
    try:
        with Path(device).open("rb", buffering=0) as file:
            start = _read(file, 0)
            end = _read(file, max(0, file.seek(0, os.SEEK_END) - EDGE_BYTES))
    except OSError as error:
        return f"it cannot be read ({error.strerror}), so it cannot be seen what is on it"
    return _known_to_blkid(device) or unknown_to_blkid(start, end)


def _read(file: io.FileIO, position: int) -> bytes:
    """That many bytes from there, or to the end. OSError if any of it cannot be read."""
    file.seek(position)
    data = bytearray()
    while len(data) < EDGE_BYTES and (more := file.read(EDGE_BYTES - len(data))):
        data += more
    return bytes(data)


def _known_to_blkid(device: str) -> str | None:
    blkid = find("blkid")
    if blkid is None:
        return "blkid is missing, so it cannot be seen what is on it (package util-linux)"
    command = (blkid, "--probe", "--output", "export", device)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=BLKID_TIMEOUT_S,
            check=False,
            # Ctrl-C is for autotune to handle: a blkid that it ends could tell nothing.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"blkid did not answer within {BLKID_TIMEOUT_S} s"
    except OSError as error:
        return f"blkid cannot be asked what is on it ({error.strerror})"
    return _said(done)


def _said(done: subprocess.CompletedProcess[str]) -> str | None:
    if done.returncode == NOTHING_FOUND and not done.stdout.strip():
        return None
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if "PTTYPE" in found:
        return f"it has a partition table ({found['PTTYPE']})"
    if "TYPE" in found:
        return f"it has a signature of {found['TYPE']} (`wipefs -a` removes it, and the data)"
    return f"blkid cannot tell what is on it ({_why(done)})"


def _why(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == AMBIVALENT:
        return "it has signatures of more than one kind"
    if done.returncode < 0:
        return f"{signal.Signals(-done.returncode).name} has ended it"
    said = done.stderr.strip().splitlines()
    return f"exit status {done.returncode}" + (f": {plain(said[-1])}" if said else "")


def unknown_to_blkid(start: bytes, end: bytes) -> str | None:
    """What blkid 2.38 does not see: bcachefs, the metadata of device-mapper targets, and a GPT of
    which only one of its two headers is left, without an MBR before it."""
    if start[BCACHEFS_AT:].startswith(BCACHEFS):
        return "it has a signature of bcachefs"
    if target := DM_MAGIC.get(int.from_bytes(start[DM_MAGIC_AT:][:8], "little")):
        return f"it has the metadata of a device-mapper target (dm-{target})"
    if any(start[sector:].startswith(GPT) for sector in (512, 4096)):
        return "it has a partition table (gpt) without its MBR"
    if any(end[-sector:].startswith(GPT) for sector in (512, 4096)):
        return "it has the copy of a partition table (gpt) at its end"
    return None
