"""Whether threads have their open files in common, as those of a process have as a rule. Light."""

import ctypes
import platform

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_FILES = 2
"""KCMP_FILES."""
_64_BITS = {
    **dict.fromkeys(("aarch64", "riscv64", "loongarch64"), 272),
    **{"x86_64": 312, "s390x": 343, "ppc64": 354, "ppc64le": 354},
}
"""The number of kcmp(2), which the C library does not know."""


class FileTables:
    """Those of the threads that were looked at, each once, in the kernel's order: a user may have
    thousands of them."""

    def __init__(self) -> None:
        self._threads: list[int] = []

    def add(self, thread: int) -> bool:
        """Whether a thread (a number) may have files that none before had. True, too, where the
        kernel does not tell."""
        low, high = 0, len(self._threads)
        while low < high:
            middle = (low + high) // 2
            match _compare(thread, self._threads[middle]):
                case 0:
                    return False
                case 1:
                    high = middle
                case 2:
                    low = middle + 1
                case _:
                    # That one may have ended.
                    del self._threads[middle]
                    high -= 1
        self._threads.insert(low, thread)
        return True


def _compare(one: int, other: int) -> int:
    """0 if two threads surely have their files in common, 1 or 2 by which of theirs come first. -1
    where the kernel does not tell: without CONFIG_KCMP, or the right to look into them."""
    number = _64_BITS.get(platform.machine()) if ctypes.sizeof(ctypes.c_void_p) == 8 else None
    if number is None:
        return -1
    words = (ctypes.c_long(each) for each in (number, one, other, _FILES, 0, 0))
    return int(_LIBRARY.syscall(*words))
