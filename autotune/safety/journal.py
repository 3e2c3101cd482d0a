"""The originals: on disk before the first write, cleared after a verified restore.

One file an array and state folder, `journal/UUID.jsonl`, only ever appended to, each line fsynced
before what it announces happens. It imports nothing heavy, since the guardian runs on it.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from autotune.durable import append, open_roots_own, private_folder, sync_folder
from autotune.errors import AutotuneError, RefusalError, StoppedError
from autotune.knobs.resets import resets
from autotune.knobs.reshape import MDADMS_MIN, MIN
from autotune.knobs.write_order import CACHE
from autotune.safety.in_time import in_time
from autotune.safety.lock_holders import holder
from autotune.safety.paths import is_of_applied, is_waiting, waiting_path
from autotune.safety.record import Record
from autotune.system import sysfs
from autotune.system.noted_records import forget
from autotune.system.stack import is_mountpoint
from autotune.untrusted import NONSENSE

OVER = b'{"kind": "over"}\n'
"""The last line of a journal whose run has nothing more to put back; see `is_over`."""
_REMOVED = b'"kind": "removed"'


class Journal:
    """The open journal of a run. Every method returns only when its line is durable. It is
    `cleared` once there is nothing to put back any more."""

    def __init__(self, path: Path, record: Record) -> None:
        self.path = path
        self.record = record
        self.cleared = False
        self.held: BinaryIO | None = None
        """The file, locked, once it is claimed."""
        self.watched = False
        """Whether a guardian stands ready to put back what it speaks of."""
        self.patience_s: float | None = None
        """While it is restored: how long its disk may take for a line before that is given up."""
        self._switched: set[Path] = set()
        """The disks whose scheduler this process has begun to write."""

    @classmethod
    def load(cls, path: Path) -> "Journal":
        """A journal that an earlier process left. A last line that was cut short is ignored:
        what it would have announced did not happen.

        Raise AutotuneError if there is no whole first line that says what to restore, or others
        than root may have written it.
        """
        with open_roots_own(path) as file:
            try:
                text = file.read()
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None
            return cls.read(path, text)

    @classmethod
    def claimed(cls, path: Path) -> "Journal":
        """Load and claim a journal, as it is once nobody else can add to it."""
        journal = cls.load(path)
        journal.claim()
        assert journal.held is not None
        now = cls.read(path, journal.held.read())
        now.held = journal.held
        return now

    @classmethod
    def read(cls, path: Path, text: bytes) -> "Journal":
        """A journal from its text, as `load` does."""
        lines = text.decode("utf-8", "replace").splitlines()
        try:
            head = json.loads(lines[0])
            record = Record(
                str(head["uuid"]),
                str(head["device"]),
                str(head["boot"]),
                int(head["pid"]),
                {str(p): str(t) for p, t in head["originals"].items()},
                None if (start := head.get("started_s")) is None else float(start),
                folders={str(f): str(i) for f, i in dict(head.get("folders", {})).items()},
                kernel=str(head.get("kernel", "")),
            )
        except NONSENSE:
            if is_of_applied(path):
                raise AutotuneError(
                    f"The record {path} is damaged, so what was there before the profile is not "
                    "known; reboot, remove the file, and apply the profile anew."
                ) from None
            if b"\n" in text:
                raise AutotuneError(
                    f"The journal {path} is damaged, so what was there before is not known; "
                    "reboot, and remove the file."
                ) from None
            raise AutotuneError(
                f"The journal {path} has no whole first line; since that is written before "
                "anything is changed, nothing was: remove the file."
            ) from None
        for number, line in enumerate(lines[1:], 2):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                # The last one may be cut short: what it announces was not done then.
                record.lost = record.lost or number < len(lines)
                continue
            if isinstance(entry, dict):
                record.learn(entry)
        if is_waiting(path):
            record.keep_waiting()
        if is_over(text) and not is_of_applied(path):
            # Killed before the file was gone: all is back, or kept.
            record = record.nothing_left()
        return cls(path, record)

    def _add(self, entry: Mapping[str, object]) -> None:
        try:
            self._append_in_time(entry)
        except AutotuneError:
            if self.patience_s is not None:
                # A restore goes on, and then it counts all the same.
                self.record.learn(entry)
            raise
        self.record.learn(entry)

    def _append_in_time(self, entry: Mapping[str, object]) -> None:
        if self.patience_s is None:
            self._append(entry)
        elif not in_time(lambda: self._append(entry), self.patience_s):
            # The next ones would wait for the same.
            self.patience_s = 0.0
            raise AutotuneError(f"The disk of the journal {self.path} does not answer.")

    def _append(self, entry: Mapping[str, object]) -> None:
        try:
            # Never made anew: a journal without its first line would say that nothing was changed.
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags)
            try:
                if not self._is_held(os.fstat(descriptor)):
                    raise OSError(errno.ESTALE, "another file has its name")
                append(descriptor, entry)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise AutotuneError(
                f"The journal {self.path} cannot be written ({error.strerror}), so nothing more "
                "is changed, and what was changed is put back."
            ) from None

    def claim(self) -> None:
        """Hold the journal until this process ends. Raise RefusalError if another one does (its
        run is under way, and will put everything back itself), FileNotFoundError if another one
        has just cleared it."""
        try:
            # Closed, and the lock with it, when nothing refers to it any more.
            self.held = open_roots_own(self.path)
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self.is_there():
                raise FileNotFoundError
        except BlockingIOError:
            assert self.held is not None
            raise RefusalError(
                f"The run of process {self.record.pid} on {self.record.device} is still under way, "
                "or its settings are just being put back; wait, or stop "
                f"{holder(self.held.fileno())}."
            ) from None

    def release(self) -> None:
        """Let go of the journal, so that the guardian can have it."""
        if self.held is not None:
            self.held.close()
            self.held = None

    def is_there(self) -> bool:
        """Whether the file that is held still has the journal's name."""
        try:
            return self._is_held(self.path.stat())
        except FileNotFoundError:
            return False

    def _is_held(self, file: os.stat_result) -> bool:
        """Whether a file is the one that is held, if one is."""
        return self.held is None or os.path.samestat(file, os.fstat(self.held.fileno()))

    def writing(self, path: Path, text: str) -> None:
        """Announce a sysfs write. Raise AutotuneError, writing nothing, if `path` has no
        original here: what cannot be put back is not written."""
        if str(path) not in self.record.originals:
            raise AutotuneError(f"{path} is not in the journal, so it is not written.")
        if path.name == "scheduler":
            self._switched.add(sysfs.device(path))
        self._add({"kind": "write", "path": str(path), "text": text})

    def store(self, path: Path, text: str) -> None:
        """Write to a file of a device that was announced. Raise StoppedError if the device is
        gone, or another one has its name by now; else as `sysfs.write`."""
        if not self.record.is_same(path):
            raise StoppedError(
                f"Stopped: {sysfs.device(path).name} was stopped or taken out, so {path.name} is "
                "not written: another device may have its name."
            )
        sysfs.write(path, text)

    def settled(self) -> None:
        """Note what the files read now that writes of ours may have moved: that, and nothing that
        was tried before, is ours from here on."""
        for name in (self.record.unsettled | self.record.reset) & self.record.originals.keys():
            known = self.record.ours.get(name, [self.record.originals[name]])
            text = sysfs.original(Path(name)) if Path(name).exists() else known[-1]
            if text != known[-1]:
                self._add({"kind": "write", "path": name, "text": text})
        self._add({"kind": "settled"})

    def took_effect(self, path: Path) -> None:
        """Note of one write what the files read now that the kernel resets with it: what else they
        read after this, somebody else has set."""
        others = [other for name in self.record.originals if resets(path, other := Path(name))]
        left = {str(other): sysfs.original(other) for other in others if other.exists()}
        self._add({"kind": "effect", "path": str(path), "left": left})

    def scratch(self, folder: Path) -> None:
        """Announce a scratch folder that a restore is to remove."""
        mount = next(parent for parent in folder.resolve().parents if is_mountpoint(parent))
        numbers = {"device": mount.stat().st_dev, "parent": folder.parent.stat().st_ino}
        self._add({"kind": "scratch", "path": str(folder), "mount": str(mount), **numbers})

    def hanging(self, folder: Path) -> None:
        """Note that a write to the file in a scratch folder does not end."""
        self._add({"kind": "hanging", "path": str(folder)})

    def leave(self, path: Path) -> None:
        """Nothing is to be put back there: what it reads, somebody else has set."""
        # A full disk keeps no restore from going on.
        with contextlib.suppress(AutotuneError):
            self._add({"kind": "back", "path": str(path)})

    def removed(self, folder: Path) -> None:
        """Note that a scratch folder is gone."""
        self._add({"kind": "removed", "path": str(folder)})

    def making(self, disks: Mapping[str, str]) -> None:
        """Announce arrays of ours with this journal's UUID, which a restore is to remove, on these
        disks (what `hardware` says of each, by its kernel name)."""
        self._add({"kind": "making", "disks": dict(disks)})

    def made(self, whole: bool) -> None:
        """Note that such an array is whole now, or that it is about to be removed."""
        self._add({"kind": "made", "whole": whole})

    def checking(self, running: bool, moved: bool = False, start: int | None = None) -> None:
        """Announce that a check of ours starts at a sector, or note that it has ended, and whether
        that left its bounds moved, since something else took the array over."""
        moves = {"running": running, "moved": running or moved, "start": start}
        self._add({"kind": "check", **moves, "begun_s": time.clock_gettime(time.CLOCK_BOOTTIME)})

    def close(self) -> None:
        """Clear the journal: everything is back."""
        self.cleared = True
        # Another run's may be there by now; or its folder is gone too, with its file system.
        if not self.is_there():
            if not self.path.exists():
                forget(self.path)
            return
        # The guardian, who keeps it open, would not see that it is gone; on a full disk it finds
        # nothing to do.
        with contextlib.suppress(AutotuneError):
            self._over()
        forget(self.path)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink(missing_ok=True)
            sync_folder(self.path.parent)

    def _over(self) -> None:
        self._add(json.loads(OVER))

    def wait(self, for_a_sync: bool = True) -> None:
        """Let what cannot go back while a sync runs wait for its end, or, if that is not why, a
        scratch folder for whoever restores next. All else is back: the journal then bars nobody any
        more."""
        path = waiting_path(self.path)
        if self.path == path or self.record.lost:
            return
        folder = self.path.parent
        earlier = Journal.load(path) if path.exists() else None
        if earlier is not None and not for_a_sync:
            self.record.originals, self.record.ours = {}, {}
        if earlier is not None and (not for_a_sync or earlier.record.same_boot(self.record)):
            self.record.keep_waiting()
            earlier._join(self.record)
            self.close()
            return
        if earlier is not None:
            self._take_scratch(earlier.record)
        forget(self.path)
        self.path = self.path.replace(path)
        sync_folder(folder)
        sync_folder(path.parent)
        self.record.keep_waiting()
        # What reads otherwise in the end, somebody else has set. Not on a full disk.
        with contextlib.suppress(AutotuneError):
            for name, original in list(self.record.originals.items()):
                if (path := Path(name)).exists():
                    text = sysfs.original(path)
                    # The cache waits for a reshape alone, and is back otherwise.
                    if not for_a_sync or (path.name == CACHE and text == original):
                        self._add({"kind": "back", "path": name})
                    elif path.name != MIN or text == MDADMS_MIN:
                        self._add({"kind": "write", "path": name, "text": text})

    def _join(self, record: Record, newer: bool = False) -> None:
        """Take over the originals of a later record; earlier ones stay, with `newer` only of what
        was changed since."""
        entry = {"originals": record.originals, "folders": record.folders, "newer": newer}
        self._add({"kind": "originals", **entry})
        for name, texts in record.ours.items():
            self._add({"kind": "write", "path": name, "text": texts[-1]})
        self._take_scratch(record)

    def _take_scratch(self, record: Record) -> None:
        """Take over what another record has left to remove."""
        for folder in record.scratch:
            mount = record.mounts.get(folder, "")
            # In another boot the filesystem may have another number.
            device = record.devices.get(folder) if record.same_boot(self.record) else None
            numbers = {"device": device, "parent": record.parents.get(folder)}
            self._add({"kind": "scratch", "path": folder, "mount": mount, **numbers})

    def found_set(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Note what files had `before` udev set them, and what they read now on our account. Under
        another scheduler some are not there ("")."""
        known = {name: text for name, text in now.items() if text}
        self._add({"kind": "first", "originals": dict(before), "now": known})

    def settle_kept(self) -> None:
        """Note that of what is kept nothing earlier is ours any more. Not while a guardian may
        still bring that back, as it does where it cannot read the journal; until then both count
        as ours."""
        if self.record.unsettled and is_of_applied(self.path) and not self.watched:
            with contextlib.suppress(AutotuneError):
                self._add({"kind": "settled"})

    def keep(self, applied: Path, profile: str = "") -> None:
        """Clear the journal though nothing went back: the values are wanted. The record moves to
        `applied`, so that they can still be undone; the originals of an earlier record there
        stay the originals. `profile`: the digest of the profile whose values they are, if it is
        one."""
        private_folder(applied.parent)
        earlier = Journal.load(applied) if applied.exists() else None
        # A reboot has undone what was applied before it.
        if earlier is not None and earlier.record.same_boot(self.record):
            if earlier.record.unsettled:
                # Somebody has begun to undo it, and was stopped.
                earlier.settled()
            earlier._join(self.record, newer=True)
            # Settings of a scheduler that was not in force when this began, and is now.
            for name in set(earlier.record.changed) - self.record.originals.keys():
                path = Path(name)
                ours = sysfs.is_schedulers_own(path) and sysfs.device(path) in self._switched
                if ours and (text := _text(path)):
                    earlier._add({"kind": "write", "path": name, "text": text})
            if profile:
                earlier._add({"kind": "profile", "digest": profile})
            self._over()
            self.close()
            # Of the scratch folder, that speaks from here on.
            self.path, self.record, self.held = earlier.path, earlier.record, None
            self.settle_kept()
            return
        if earlier is not None:
            self._take_scratch(earlier.record)
        folder = self.path.parent
        if profile:
            self._add({"kind": "profile", "digest": profile})
        forget(self.path)
        self.path = self.path.replace(applied)
        # Killed before this, the guardian puts the originals back.
        self._over()
        self.cleared = True
        sync_folder(applied.parent)
        sync_folder(folder)


def is_over(text: bytes) -> bool:
    """Whether a journal says that nothing is left to put back. What is kept is said to be so
    before the run's scratch folder is gone, which is noted after that, if it is noted whole."""
    _, over, after = text.rpartition(OVER)
    return bool(over) and all(_REMOVED in line for line in after.split(b"\n")[:-1])


def _text(path: Path) -> str:
    return sysfs.original(path) if path.exists() else ""
