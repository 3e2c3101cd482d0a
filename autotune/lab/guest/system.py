"""Makes the bare guest an ordinary system: modules, a writable root, the usual mounts."""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
from pathlib import Path

from autotune.lab.plan import SHARED, GuestPlan

_libc = ctypes.CDLL(None, use_errno=True)
_FINIT_MODULE = 313  # x86-64, the only architecture of a user-mode kernel
_PIVOT_ROOT = 155
_MNT_DETACH = 2
_MS_MOVE = 8192

MODULES = Path("/lib/modules")

_MODULES = (
    *("virtio_blk", "raid456", "raid1", "raid10", "raid0", "linear", "bfq"),
    *("cbc", "ecb", "xts", "dm-mod", "dm-crypt", "dm-snapshot", "loop"),
)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(kind: str, source: str, target: str, options: str = "", flags: int = 0) -> None:
    """Mount a filesystem on a folder, which is made if missing. Raise OSError."""
    Path(target).mkdir(parents=True, exist_ok=True)
    words = (source.encode(), target.encode(), kind.encode(), flags, options.encode())
    _check(_libc.mount(*words), f"mount {target}")


def load_modules(names: tuple[str, ...], modules: Path = MODULES) -> None:
    """Load kernel modules and what they need, from the folder that has one for each kernel; those
    there already are not. Raise OSError."""
    folder = modules / os.uname().release
    needs: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        needs[Path(path).stem] = [*reversed(needed.split()), path]
    loaded = set()
    for path in (path for name in names for path in needs.get(name, [])):
        if path in loaded:
            continue
        loaded.add(path)
        fd = os.open(folder / path, os.O_RDONLY | os.O_CLOEXEC)
        result = _libc.syscall(_FINIT_MODULE, fd, b"", 0)
        os.close(fd)
        if ctypes.get_errno() != errno.EEXIST:
            _check(result, path)


def make_writable(modules: Path) -> None:
    """Put a layer in memory over the host's files, and make that the root. The kernel's modules go
    where programs look for them. Raise OSError."""
    load_modules(("overlay",), modules)
    mount("tmpfs", "tmpfs", "/mnt")
    for name in ("upper", "work", "root"):
        Path("/mnt", name).mkdir()
    layers = "lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work"
    mount("overlay", "overlay", "/mnt/root", layers)
    mount("", "/dev", "/mnt/root/dev", flags=_MS_MOVE)
    os.chdir("/mnt/root")
    _check(_libc.syscall(_PIVOT_ROOT, b".", b"mnt"), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/mnt", _MNT_DETACH), "umount /mnt")
    release = os.uname().release
    MODULES.mkdir(exist_ok=True)
    if not (MODULES / release).exists():
        (MODULES / release).symlink_to(modules / release)


def populate(plan: GuestPlan) -> None:
    """Mount what a running system has, load modules, name the machine. Raise OSError."""
    mount("proc", "proc", "/proc")
    mount("sysfs", "sysfs", "/sys")
    mount("devpts", "devpts", "/dev/pts", "mode=620,ptmxmode=666")
    mount("tmpfs", "tmpfs", "/dev/shm", "mode=1777")
    mount("tmpfs", "tmpfs", "/run", "mode=755")
    Path("/run/lock").mkdir()
    mount("hostfs", "none", SHARED, plan["shared"])
    if plan["out"]:
        mount("hostfs", "none", plan["out"], plan["out"])
    load_modules(_MODULES)
    socket.sethostname("autotune-lab")
    _loopback_up()
    if plan["udev"]:
        subprocess.run(["/lib/systemd/systemd-udevd", "--daemon"], check=True)
        subprocess.run(["udevadm", "trigger", "--action=add"], check=True)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        set_flags, up_and_running = 0x8914, 0x41
        request = struct.pack("16sh14x", b"lo", up_and_running)
        fcntl.ioctl(any_socket, set_flags, request)


def flush(plan: GuestPlan) -> None:
    """Write what is still in memory for the host's folder to the host. Raise OSError."""
    if not plan["out"]:
        return
    folder = os.open(plan["out"], os.O_RDONLY | os.O_CLOEXEC)
    _check(_libc.syncfs(folder), f"sync {plan['out']}")
    os.close(folder)
