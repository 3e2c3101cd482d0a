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

from autotune.durable import append, open_roots_own, sync_folder
from autotune.errors import AutotuneError, RefusalError, StoppedError
from autotune.knobs.resets import resets
from autotune.safety.in_time import in_time
from autotune.safety.journal_text import OVER, read_record
from autotune.safety.lock_holders import holder
from autotune.safety.paths import is_of_applied
from autotune.safety.record import Record
from autotune.system import sysfs
from autotune.system.noted_records import forget
from autotune.system.stack import is_mountpoint


class Journal:
    """The open journal of a run. A method that adds a line returns when that is durable, or raises
    AutotuneError; but `leave`, `close` and `settle_kept` go on without it, so that a full disk
    stops no restore. It is `cleared` once there is nothing to put back any more."""

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
        self.switched: set[Path] = set()
        """The disks whose scheduler this process has begun to write."""

    @classmethod
    def load(cls, path: Path) -> "Journal":
        """A journal that an earlier process left. Raise AutotuneError as `read_record`, or if
        others than root may have written it; OSError if it is not there or cannot be read."""
        with open_roots_own(path) as file:
            try:
                text = file.read()
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None
            return cls.read(path, text)

    @classmethod
    def claimed(cls, path: Path) -> "Journal":
        """Load and claim a journal, as it is once nobody else can add to it. Raise as `load` and
        `claim`."""
        journal = cls.load(path)
        journal.claim()
        assert journal.held is not None
        now = cls.read(path, journal.held.read())
        now.held = journal.held
        return now

    @classmethod
    def read(cls, path: Path, text: bytes) -> "Journal":
        """A journal from its text. Raise AutotuneError as `read_record`."""
        return cls(path, read_record(path, text))

    def add(self, entry: Mapping[str, object]) -> None:
        """Add a line, and let the record know. Raise AutotuneError if it cannot be written."""
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
            self.switched.add(sysfs.device(path))
        self.add({"kind": "write", "path": str(path), "text": text})

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
                self.add({"kind": "write", "path": name, "text": text})
        self.add({"kind": "settled"})

    def took_effect(self, path: Path) -> None:
        """Note of one write what the files read now that the kernel resets with it: what else they
        read after this, somebody else has set."""
        others = [other for name in self.record.originals if resets(path, other := Path(name))]
        left = {str(other): sysfs.original(other) for other in others if other.exists()}
        self.add({"kind": "effect", "path": str(path), "left": left})

    def scratch(self, folder: Path) -> None:
        """Announce a scratch folder that a restore is to remove."""
        mount = next(parent for parent in folder.resolve().parents if is_mountpoint(parent))
        numbers = {"device": mount.stat().st_dev, "parent": folder.parent.stat().st_ino}
        self.add({"kind": "scratch", "path": str(folder), "mount": str(mount), **numbers})

    def hanging(self, folder: Path) -> None:
        """Note that a write to the file in a scratch folder does not end."""
        self.add({"kind": "hanging", "path": str(folder)})

    def leave(self, path: Path) -> None:
        """Nothing is to be put back there: what it reads, somebody else has set."""
        # A full disk keeps no restore from going on.
        with contextlib.suppress(AutotuneError):
            self.add({"kind": "back", "path": str(path)})

    def removed(self, folder: Path) -> None:
        """Note that a scratch folder is gone."""
        self.add({"kind": "removed", "path": str(folder)})

    def making(self, disks: Mapping[str, str]) -> None:
        """Announce arrays of ours with this journal's UUID, which a restore is to remove, on these
        disks (what `hardware` says of each, by its kernel name)."""
        self.add({"kind": "making", "disks": dict(disks)})

    def made(self, whole: bool) -> None:
        """Note that such an array is whole now, or that it is about to be removed."""
        self.add({"kind": "made", "whole": whole})

    def checking(self, running: bool, moved: bool = False, start: int | None = None) -> None:
        """Announce that a check of ours starts at a sector, or note that it has ended, and whether
        that left its bounds moved, since something else took the array over."""
        moves = {"running": running, "moved": running or moved, "start": start}
        self.add({"kind": "check", **moves, "begun_s": time.clock_gettime(time.CLOCK_BOOTTIME)})

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
            self.over()
        forget(self.path)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink(missing_ok=True)
            sync_folder(self.path.parent)

    def over(self) -> None:
        """Note that nothing is left to put back: all is, or the values are wanted."""
        self.add(json.loads(OVER))

    def found_set(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Note what files had `before` udev set them, and what they read now on our account. Under
        another scheduler some are not there ("")."""
        known = {name: text for name, text in now.items() if text}
        self.add({"kind": "first", "originals": dict(before), "now": known})

    def settle_kept(self) -> None:
        """Note that of what is kept nothing earlier is ours any more. Not while a guardian may
        still bring that back, as it does where it cannot read the journal; until then both count
        as ours."""
        if self.record.unsettled and is_of_applied(self.path) and not self.watched:
            with contextlib.suppress(AutotuneError):
                self.add({"kind": "settled"})
