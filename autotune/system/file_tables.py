"""Whether threads have their open files in common, as those of a process have as a rule. Light, as
the journal."""

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


def share_files(one: int, other: int) -> bool:
    """Whether two threads (numbers) surely do. False where the kernel does not tell: without
    CONFIG_KCMP, or the right to look into them."""
    number = _64_BITS.get(platform.machine()) if ctypes.sizeof(ctypes.c_void_p) == 8 else None
    if number is None:
        return False
    words = (ctypes.c_long(each) for each in (number, one, other, _FILES, 0, 0))
    return bool(_LIBRARY.syscall(*words) == 0)
