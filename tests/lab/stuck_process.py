"""A process whose memory cannot be looked at: `stuck_process.py FILE`. One thread waits for a page
of a file that does not answer (of silent_fuse.py), another for its turn to change the memory map.
Whoever reads its command line waits with them (kernel: mmap_lock)."""

import ctypes
import mmap
import os
import sys
import threading
import time

PAGE, RANDOM = 4096, 1


def main(file: str) -> None:
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    opened = os.open(file, os.O_RDONLY)
    page = ctypes.c_void_p(library.mmap(None, PAGE, mmap.PROT_READ, mmap.MAP_SHARED, opened, 0))
    library.madvise(page, PAGE, RANDOM)

    def asks_for_memory() -> None:
        time.sleep(2)
        library.mmap(None, PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

    threading.Thread(target=asks_for_memory, daemon=True).start()
    print("begins", flush=True)
    library.memcmp(page, ctypes.create_string_buffer(PAGE), PAGE)


main(sys.argv[1])
