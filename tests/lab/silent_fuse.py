"""A filesystem that has to be asked about its folder each time, until its program is stopped, and
whose one file, `page`, fails the first time it is read and never answers again:
`silent_fuse.py FOLDER`. The numbers are those of linux/fuse.h."""

import ctypes
import os
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, INIT = 1, 2, 3, 14, 15, 17, 26
FOLDER, FILE = 1, 2
MODES = {FOLDER: 0o40755, FILE: 0o100644}
HEAD = struct.Struct("=2I2Q")
ANSWER = struct.Struct("=IiQ")
UNKNOWN, FAILED = -38, -5


def about(node: int) -> bytes:
    size = 4096 * (node == FILE)
    return struct.pack("=6Q10I", node, size, *(0,) * 4, 0, 0, 0, MODES[node], 1, 0, 0, 0, 4096, 0)


def answer(operation: int, node: int) -> bytes | None:
    """What an operation is answered; None if it is not known here."""
    if operation == INIT:
        return struct.pack("=4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *(0,) * 8)
    if operation == GETATTR:
        # It is good for no time, so each question comes here.
        return struct.pack("=Q2I", 0, 0, 0) + about(node)
    if operation == LOOKUP:
        return struct.pack("=4Q2I", FILE, 0, 1000, 1000, 0, 0) + about(FILE)
    if operation == STATFS:
        return struct.pack("=5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *(0,) * 7)
    return bytes(16) if operation == OPEN else None


def main(folder: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"silent", folder.encode(), b"fuse.silent", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    print("mounted", flush=True)
    reads = 0
    while True:
        request = os.read(device, 1 << 20)
        _, operation, unique, node = HEAD.unpack_from(request)
        reads += operation == READ
        if operation == FORGET or (reads > 1 and operation == READ):
            continue
        told = answer(operation, node)
        error = UNKNOWN if told is None else 0
        error = FAILED if operation == READ else error
        told = told or b""
        os.write(device, ANSWER.pack(ANSWER.size + len(told), error, unique) + told)


main(sys.argv[1])
