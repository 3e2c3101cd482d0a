"""What a journal says: the state to put back, and what was done since. Light."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.knobs.resets import resets
from autotune.knobs.reshape import MDADMS_MIN, MIN
from autotune.knobs.write_order import WAITING
from autotune.safety.shared_folder import kernel_mark
from autotune.system import sysfs
from autotune.system.sync import NAMES

CLOCK_SLEW_S = 5.0
"""So far a clock that is set right may move, and no machine starts anew in so short a time."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id(root: Path = Path("/")) -> str:
    """What this boot is called; sysfs values do not outlive it."""
    return (root / BOOT_ID.relative_to("/")).read_text().strip()


def kernel_start_s(root: Path = Path("/")) -> float | None:
    """When the kernel started, in seconds since 1970, as far as the clock is right: a container
    has no start of its own. None if `root` is not this machine's."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) if root == Path("/") else None


@dataclass
class Record:
    """One journal, as far as it was read; `learn` takes one more line.

    `ours` are the texts, by path, that a file may read by our doing: the last one that was seen to
    take effect, and those announced since. What else it reads was set by somebody else, unless the
    kernel has just `reset` it on our account, as a switch of the scheduler does with `nr_requests`.
    """

    uuid: str
    device: str
    boot: str
    pid: int
    originals: dict[str, str] = field(default_factory=dict)
    started_s: float | None = None
    """When the kernel started; None in journals of an earlier version."""
    kernel: str = ""
    """Its mark (`kernel_mark`); "" if that is not known."""
    ours: dict[str, list[str]] = field(default_factory=dict)
    profile: str = ""
    """The digest of the profile that was applied; "" if that is not noted."""
    unsettled: set[str] = field(default_factory=set)
    """The files announced for writing since it was last noted what took effect."""
    scratch: list[str] = field(default_factory=list)
    mounts: dict[str, str] = field(default_factory=dict)
    """Where the filesystem of each scratch folder was mounted."""
    devices: dict[str, int] = field(default_factory=dict)
    """The number that it had there, in that boot."""
    parents: dict[str, int] = field(default_factory=dict)
    """The number of the folder that each is in, as its filesystem counts (st_ino)."""
    hanging: set[str] = field(default_factory=set)
    """The scratch folders that a write to did not end."""
    checking: bool = False
    """A check of ours runs."""
    check_start: int | None = None
    """The sector where it began; None in journals of an earlier version."""
    check_begun_s: float | None = None
    """When it was announced, on the clock that goes on while the machine sleeps; None as above."""
    moved: bool = False
    """The kernel has moved `sync_min` on account of a check of ours."""

    folders: dict[str, str] = field(default_factory=dict)
    """What the folder of each device was known by: names change hands."""

    making: dict[str, str] = field(default_factory=dict)
    """The disks that arrays of ours with this UUID are made of, to be removed: what `hardware` says
    of each ("": nothing, as in journals of an earlier version), by its kernel name."""
    made: bool = False
    """Such an array is whole, so that somebody may have put something on it since."""

    lost: bool = False
    """Somebody emptied or damaged the journal: nothing is known for sure but the originals."""

    @property
    def reset(self) -> set[str]:
        """The files that the kernel may have changed with the writes announced last."""
        written = [Path(name) for name in self.unsettled]
        return {
            name for name in self.originals if any(resets(path, Path(name)) for path in written)
        }

    def cause(self, name: str) -> str | None:
        """The write of ours that has changed a file: to it, or to one that resets it; None if there
        is none."""
        if name in self.ours:
            return name
        return next((by for by in self.ours if resets(Path(by), Path(name))), None)

    @property
    def changed(self) -> list[str]:
        """The files that writes of ours have changed, or the kernel with them."""
        return [name for name in self.originals if self.cause(name) is not None]

    def is_same(self, path: Path) -> bool:
        """Whether a file is still one of the device that it was recorded of."""
        folder = sysfs.device(path)
        known = self.folders.get(str(folder))
        return known is None or known == sysfs.identity(folder)

    def of_this_boot(self, root: Path) -> bool:
        """Whether the kernel has not forgotten what was written. A container that was started anew
        has another boot's name, and yet the same kernel."""
        mark = kernel_mark() if root == Path("/") else ""
        return self._is_of(boot_id(root), kernel_start_s(root), mark)

    def same_boot(self, other: "Record") -> bool:
        """Whether both are of one boot of the kernel."""
        return self._is_of(other.boot, other.started_s, other.kernel)

    def _is_of(self, boot: str, started_s: float | None, kernel: str) -> bool:
        if self.boot == boot:
            return True
        if self.kernel and kernel:
            # Surer than the clock, which starts alike each time where no battery keeps it.
            return self.kernel == kernel
        if self.started_s is None or started_s is None:
            return False
        return abs(started_s - self.started_s) < CLOCK_SLEW_S

    def action(self, root: Path) -> Path:
        """The file that says what sync the array runs, whatever name the array has by now."""
        for path in self._waiting():
            return path.parent / "sync_action"
        return root / "sys/block" / Path(self.device).name / "md/sync_action"

    def waits(self, root: Path) -> list[str]:
        """What waits for the end of a sync, in words."""
        action = sysfs.read_or(self.action(root), "sync")
        sync, known = NAMES.get(action, "sync"), self.originals
        told = []
        for path in self._waiting():
            what = f"{path.name} of /dev/{sysfs.device(path).name}"
            with contextlib.suppress(OSError):
                reads = sysfs.original(path)
                if path.name == MIN and reads != MDADMS_MIN:
                    told.append(f"{what} is looked at again after the {sync}: mdadm may change it")
                elif reads != known[str(path)]:
                    told.append(f"{what} goes back by itself once the {sync} has ended")
        return told

    def _waiting(self) -> list[Path]:
        """The files, of arrays that are still there, that no sync lets go back."""
        paths = [path for name in self.originals if (path := Path(name)).name in WAITING]
        return [path for path in paths if path.exists() and self.is_same(path)]

    def nothing_left(self) -> "Record":
        """The record of the same run with nothing to put back."""
        head = self.uuid, self.device, self.boot, self.pid
        return Record(*head, started_s=self.started_s, kernel=self.kernel)

    def keep_waiting(self) -> None:
        """Forget all but what waits for the end of a sync, and what is left to remove."""
        self.originals = {p: t for p, t in self.originals.items() if Path(p).name in WAITING}
        self.ours = {p: t for p, t in self.ours.items() if p in self.originals}
        self.checking = False

    def _join(
        self, originals: Mapping[object, object], folders: Mapping[object, object], newer: bool
    ) -> None:
        """Take over what is not known, and what is of a device that was started anew since;
        `newer`: also what nothing of ours has changed."""
        for name in map(str, originals):
            folder = str(sysfs.device(Path(name)))
            known = self.folders.get(folder)
            if known != folders.get(folder, known):
                self.originals.pop(name, None)
                self.ours.pop(name, None)
        names = map(str, originals)
        # Of what goes with a scheduler and is not known, its switch back sets what is right.
        known_better = {n for n in names if self.cause(n)} if newer else set(self.originals)
        for path, text in originals.items():
            if str(path) not in known_better:
                self.originals.pop(str(path), None)
                self.originals[str(path)] = str(text)
        self.folders.update({str(folder): str(known) for folder, known in folders.items()})

    def _learn_scratch(self, path: str, entry: Mapping[str, object]) -> None:
        self.scratch.append(path)
        self.mounts[path] = str(entry.get("mount", ""))
        for name, numbers in (("device", self.devices), ("parent", self.parents)):
            if isinstance(number := entry.get(name), int):
                numbers[path] = number

    def _settle(self, entry: Mapping[str, object]) -> None:
        """The last texts announced have taken effect: all, or that of one `path` with what the
        kernel has `left` beside it."""
        match entry:
            case {"path": str(path), "left": dict(left)}:
                self.ours[path] = self.ours.get(path, [])[-1:]
                for other, text in left.items():
                    self.ours.setdefault(str(other), []).append(str(text))
                self.unsettled.discard(path)
            case _:
                self.ours = {path: texts[-1:] for path, texts in self.ours.items()}
                self.unsettled = set()

    def learn(self, entry: Mapping[str, object]) -> None:
        """Take one journal line into account; an unknown kind is ignored."""
        match entry:
            case {"kind": "write", "path": str(path), "text": str(text)}:
                self.ours.setdefault(path, []).append(text)
                self.unsettled.add(path)
            case {"kind": "settled" | "effect"}:
                self._settle(entry)
            case {"kind": "back", "path": str(path)}:
                self.originals.pop(path, None)
                self.ours.pop(path, None)
            case {"kind": "originals", "originals": dict(originals)}:
                folders = entry.get("folders")
                known = folders if isinstance(folders, dict) else {}
                self._join(originals, known, newer=bool(entry.get("newer")))
            case {"kind": "first", "originals": dict(originals), "now": dict(now)}:
                self.originals.update({str(p): str(t) for p, t in originals.items()})
                theirs = {str(p): [str(t), *self.ours.get(str(p), [])] for p, t in now.items()}
                self.ours.update(theirs)
            case {"kind": "profile", "digest": str(digest)}:
                self.profile = digest
            case {"kind": "scratch", "path": str(path)}:
                self._learn_scratch(path, entry)
            case {"kind": "hanging", "path": str(path)}:
                self.hanging.add(path)
            case {"kind": "making", "disks": list() | dict() as disks}:
                known_by = disks if isinstance(disks, dict) else dict.fromkeys(disks, "")
                self.making = {str(disk): str(known) for disk, known in known_by.items()}
            case {"kind": "made", "whole": bool(whole)}:
                self.made = whole
            case {"kind": "removed", "path": str(path)}:
                self.scratch = [folder for folder in self.scratch if folder != path]
            case {"kind": "check", "running": bool(running)}:
                self.checking, self.moved = running, bool(entry.get("moved", running))
                start = entry.get("start")
                self.check_start = start if isinstance(start, int) else None
                begun_s = entry.get("begun_s")
                self.check_begun_s = begun_s if isinstance(begun_s, float) else None
