"""Arrays that autotune has made on blank disks, and their removal: they are stopped, and their
superblocks zeroed, nothing else. Light: the guardian runs it when their maker is dead.

They are known by a UUID that was recorded before they were made.
"""

import contextlib
import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.safety.own_superblock import bears, cannot_run, is_unwritten, node, zero
from autotune.system import sysfs
from autotune.system.blockdev import hardware, md_uuid
from autotune.system.programs import find
from autotune.system.signature import signature

STOP_ARRAY = 0x932
"""`_IO(MD_MAJOR, 0x32)` (kernel include/uapi/linux/raid/md_u.h)."""
PATIENCE_S = 30.0
"""A load that was killed, or udev, may have it open for moments."""
LOOK_S = 0.2
NOT_ACTIVE = "it is not active, so what is on it cannot be seen"
COMMAND_S = 20.0
DISKS = Path("/sys/block")


@dataclass
class Removal:
    """What was removed, and what could not be, in words."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def note(self, what: str, fault: str) -> None:
        """Something is removed, or not for this reason."""
        if fault:
            self.failed.append(fault)
        else:
            self.removed.append(what)


def remove(uuid: str, disks: Collection[str]) -> Removal:
    """By whoever has just made them: stop the arrays with this UUID (32 hex digits), and zero the
    superblocks with it on these disks (kernel names). One that somebody has put something on stays.

    Never raises for one of them: what could not be removed is told.
    """
    found = Removal()
    members, unseen = _members(uuid, disks)
    found.failed += map(_told, unseen.items())

    def stop(name: str) -> str:
        # Somebody may have put something on it in a moment when it was not held.
        if _is_active(name):
            return _stop_blank(name, members, len(members), begun=True)
        return _stop(name, uuid)

    for name in _arrays(uuid, members):
        if fault := stop(name):
            found.failed.append(f"/dev/{name} stays, since {fault}")
            return found
        found.removed.append(f"/dev/{name}")
    _zero_all(uuid, members, found, stop)
    return found


def remove_left(
    uuid: str,
    disks: Mapping[str, str],
    rebooted: bool = False,
    begun: bool = False,
    removing: bool = False,
) -> Removal:
    """The same when their maker is dead, of an array that was made of all these disks (what
    `hardware` says of each, by its kernel name). By then somebody may have put something on it. So
    it stays, and is told of, unless it is active, whole and seen to be blank while nobody can
    change that. It stays too as long as one of its disks is not there to be looked at.

    `begun`: right after the maker's death in the midst of making or removing it: what is not active
    then was never used. `removing`: its maker had begun to make or remove it. If all its disks are
    there then, and too few of them are still members for any array, that is what a disk had which
    failed and came back. And to an array that never got as far as to run, nothing was written.
    """
    found = Removal()
    names, absent = _now_called(uuid, disks, rebooted)
    members, unseen = _members(uuid, names)
    if len(members) < len(disks) and not all(disks.values()):
        # A disk that does not say what it is has another name after a reboot, or plugged in again.
        members += _members(uuid, [name for name in _disks_here() if name not in names])[0]
    if len(members) < len(disks):
        found.failed += map(_told, (absent | unseen).items())
    arrays = _arrays(uuid, members)
    if not (members or arrays):
        return found

    def stop(name: str) -> str:
        return _stop_blank(name, members, len(disks), begun)

    all_seen = not (absent or unseen) and (all(disks.values()) or not rebooted)
    unused = cannot_run(members, uuid) or is_unwritten(members, uuid)
    remains = removing and all_seen and unused
    if (begun or remains) and not any(map(_is_active, arrays)):
        fault = next(filter(None, (_stop(name, uuid) for name in arrays)), "")
    elif len(arrays) == 1:
        fault = stop(arrays[0])
    else:
        fault = f"its disks are in {' and '.join(arrays)}" if arrays else NOT_ACTIVE
    if fault:
        devices = [f"/dev/{disk}" for disk in members]
        stop_first = "".join(f"`mdadm --stop /dev/{name}`, then " for name in arrays)
        again = " Or assemble the array with all its members and restore again."
        can_be_whole = len(members) == len(disks) or absent or unseen
        found.failed.append(
            f"what a design has left on {', '.join(devices)} stays, since {fault}. If nobody needs "
            f"what is on it, remove it with {stop_first}`mdadm --zero-superblock "
            f"{' '.join(devices)}`.{again if can_be_whole else ''} To keep the array, delete the "
            "journal"
        )
        return found
    found.removed += [f"/dev/{name}" for name in arrays]
    _zero_all(uuid, members, found, stop)
    return found


def _stop_blank(name: str, members: Sequence[str], made_of: int, begun: bool) -> str:
    """Stop an array that nobody uses and that has nothing on it; why it stays, "" if it is
    stopped."""
    md = Path("/sys/block", name, "md")
    if not _is_active(name):
        return NOT_ACTIVE
    if not begun and (len(members) < made_of or sysfs.read_or(md / "degraded", "0") != "0"):
        return f"not all {made_of} members of /dev/{name} are there"
    fault = ""
    for _ in _patiently():
        try:
            # Whoever mounts it or makes a filesystem wants it alone, too.
            descriptor = os.open(node(name), os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            fault = f"/dev/{name} is in use ({error.strerror})"
            continue
        try:
            if content := signature(node(name)):
                return f"on /dev/{name}, {content}"
            # Refused as long as anybody else has it open.
            fcntl.ioctl(descriptor, STOP_ARRAY)
            return ""
        except OSError as error:
            fault = f"/dev/{name} cannot be stopped ({error.strerror})"
        finally:
            os.close(descriptor)
    return fault


def _now_called(
    uuid: str, disks: Mapping[str, str], rebooted: bool
) -> tuple[list[str], dict[str, str]]:
    """What these disks are called now, and those that are not there, with the reason. Several disks
    may say the same of themselves, as some adapters have it."""
    said = {name: hardware(name, Path("/")) for name in _disks_here()}
    names = [name for name, known in said.items() if known and known in disks.values()]
    absent: dict[str, str] = {}
    for known in filter(None, set(disks.values())):
        ours = [name for name in disks if disks[name] == known]
        there = [name for name in said if said[name] == known]
        missing = [name for name in ours if name not in there]
        gone = len(ours) - len(there)
        if not rebooted and len(there) > 1:
            # Another disk that says the same is none of ours, unless its superblock says so.
            gone = len(missing) - len(_members(uuid, [n for n in there if n not in ours])[0])
        absent |= dict.fromkeys(missing[: max(0, gone)], "No such device")
    if not rebooted:
        names += [name for name, known in disks.items() if not known]
    return names, absent


def _disks_here() -> list[str]:
    """The disks of this machine. What has no hardware of its own, such as a device of the device
    mapper that is suspended, might not answer for ever."""
    return sorted(entry.name for entry in DISKS.iterdir() if (entry / "device").exists())


def _is_active(name: str) -> bool:
    """Whether an array can be read: one that is only begun, or lacks members, has no size."""
    return sysfs.read_or(Path("/sys/class/block", name, "size"), "0") != "0"


def _told(unseen: tuple[str, str]) -> str:
    disk, why = unseen
    return (
        f"whether /dev/{disk} has a superblock of ours cannot be seen ({why}); plug it in again "
        "and run `autotune restore`, or delete the journal if it is gone for good"
    )


def _zero_all(
    uuid: str, members: Sequence[str], found: Removal, stop: Callable[[str], object]
) -> None:
    """Zero the superblocks with this UUID, all of them held before the first: nobody could look at
    what is on half an array. `stop` is for one that udev, late to hear of it, begins again."""
    with contextlib.ExitStack() as stack:
        held, faults = _held(uuid, members, stop, stack)
        for disk in members:
            fault = zero(held[disk], uuid) if disk in held else faults[disk]
            what = f"superblock on /dev/{disk}"
            found.note(f"the {what}", f"the {what} cannot be zeroed: {fault}" if fault else "")


def _held(
    uuid: str, members: Sequence[str], stop: Callable[[str], object], stack: contextlib.ExitStack
) -> tuple[dict[str, int], dict[str, str]]:
    """The members, open for this process alone as long as the stack is; why others are not."""
    flags = os.O_RDWR | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
    held: dict[str, int] = {}
    faults: dict[str, str] = {}
    for _ in _patiently():
        with contextlib.ExitStack() as tried:
            held, faults, busy = {}, {}, False
            for disk in members:
                try:
                    held[disk] = os.open(node(disk), flags)
                    tried.callback(os.close, held[disk])
                except OSError as error:
                    busy |= error.errno == errno.EBUSY
                    faults[disk] = error.strerror or str(error)
            if not busy:
                stack.enter_context(tried.pop_all())
                return held, faults
        for name in _arrays(uuid, members):
            stop(name)
    return {}, {disk: faults.get(disk, "another member is in use") for disk in members}


def _members(uuid: str, disks: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The disks that have a superblock with this UUID, and those of which that cannot be seen, with
    the reason."""
    found, unseen = [], {}
    for disk in disks:
        try:
            if bears(disk, uuid):
                found.append(disk)
        except OSError as error:
            unseen[disk] = error.strerror or str(error)
    return found, unseen


def _arrays(uuid: str, members: Iterable[str]) -> list[str]:
    """Those that are known by their UUID, and those, begun perhaps, that have such a member."""
    names = {
        folder.parent.name: None
        for folder in sorted(Path("/sys/block").glob("*/md"))
        if md_uuid(folder.parent.name, sysfs.read_or(folder / "metadata_version", ""), Path("/"))
        == uuid
    }
    for member in members:
        for holder in sorted(Path("/sys/class/block", member, "holders").glob("*/md")):
            names[holder.parent.name] = None
    return list(names)


def _stop(name: str, uuid: str) -> str:
    """Stop an array; what prevents it, "" if nothing does, or if another one has its name by
    now."""
    md = Path("/sys/block", name, "md")
    fault = ""
    for _ in _patiently():
        if sysfs.read_or(md / "array_state", "clear") == "clear":
            return ""
        metadata = sysfs.read_or(md / "metadata_version", "")
        if md_uuid(name, metadata, Path("/")) not in ("", uuid):
            return ""
        fault = _run("mdadm", "--stop", f"/dev/{name}") or "mdadm --stop had no effect"
    return fault


def _run(*words: str) -> str:
    try:
        done = subprocess.run(
            (find(words[0]) or words[0], *words[1:]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
    except OSError as error:
        return f"{words[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{words[0]} does not answer"
    lines = done.stderr.strip().splitlines()
    return lines[-1].rstrip(".") if done.returncode and lines else ""


def _patiently() -> Iterator[None]:
    """Again and again, until the patience is at its end."""
    deadline = time.monotonic() + PATIENCE_S
    yield
    while time.monotonic() < deadline:
        time.sleep(LOOK_S)
        yield
