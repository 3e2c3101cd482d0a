"""What keeps a scratch file from being written to any more, looked at while a run goes on."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from autotune.system import layers
from autotune.system.layers import Asking
from autotune.system.programs import UnseenError
from autotune.system.scratch_space import FULL_TO_GO_ON, too_full
from autotune.system.stack import Mount
from autotune.system.underlying import Underlying, layers_of, off_array, read_underlying


class SameFile:
    """The scratch file itself, which fio opens by its name; call it for what ends the run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._number = file.lstat().st_ino

    def __call__(self) -> str | None:
        try:
            status = self._file.lstat()
        except OSError:
            status = None
        if status and stat.S_ISREG(status.st_mode) and status.st_ino == self._number:
            return None
        return f"{self._file} is not the scratch file of this run any more"


class Footing:
    """The filesystem with the scratch file and what it lies on; call it for what ends the run."""

    def __init__(
        self, folder: Path, mount: Mount, array: str, underlying: Underlying, size_bytes: int
    ) -> None:
        """`size_bytes`: what the file takes; whoever has no more than that left needs it more."""
        self._folder = folder
        self._mount = mount
        self._array = array
        self._underlying = underlying
        status = folder.stat()
        self._place = (status.st_dev, status.st_ino)
        self._asked: dict[str, Asking] = {}
        self._least_bytes = size_bytes
        self._is_btrfs = bool(layers.of_one_btrfs(mount.device, underlying.root))

    def __call__(self) -> str | None:
        looks: tuple[Callable[[], str | None], ...] = (
            self._covered,
            self._new,
            self._short,
            self._full,
        )
        return next((found for look in looks if (found := look())), None)

    def _covered(self) -> str | None:
        """Whether the folder's name still leads there."""
        try:
            status = self._folder.stat()
        except OSError:
            status = None
        if status is not None and (status.st_dev, status.st_ino) == self._place:
            return None
        return f"something else was mounted over {self._folder}, or its filesystem was unmounted"

    def _new(self) -> str | None:
        """Whether something has come between, as a snapshot does that is taken now, or the
        filesystem is being moved to other disks."""
        root, before = self._underlying.root, self._underlying.layers
        if not self._is_on_the_array(root):
            return (
                f"the filesystem of {self._folder} does not lie on {self._array} any more, so what "
                "is measured there is something else"
            )
        if layers_of(self._mount, self._array, root) == before:
            return None
        other = off_array(self._mount, self._array, root)
        if other is not None and other not in before:
            device = layers.label(other, root)
            return (
                f"the filesystem of {self._folder} lies on {device} too by now, so what is "
                f"measured there is not {self._array} alone"
            )
        self._underlying = read_underlying(self._mount, self._array, root)
        if not self._underlying.bar:
            return None
        text = f"nothing more can be written in {self._folder}: {self._underlying.bar}"
        # It keeps a copy of what the run has written over until now.
        return f"{text}; `lvs` says whether it is still valid" if "snapshot" in text else text

    def _is_on_the_array(self, root: Path) -> bool:
        device = self._mount.device
        # One that a btrfs has let go of is none of its own any more.
        devices = layers.of_one_btrfs(device, root) if self._is_btrfs else [device]
        return any(layers.lies_on(each, self._array, root) for each in devices)

    def _short(self) -> str | None:
        """Whether others have filled the filesystem since, or one that it lies on."""
        for place in (self._folder, *(store.parent for store in self._underlying.stores)):
            try:
                space = os.statvfs(place)
            except OSError:
                continue
            if space.f_bavail * space.f_frsize < self._least_bytes:
                return (
                    f"the filesystem of {place} is nearly full, and others need what the scratch "
                    "file takes"
                )
        return None

    def _full(self) -> str | None:
        """Whether a thin pool below nears its end. What is asked now is answered at the next
        look, for the kernel may take its time."""
        for name in self._underlying.pools:
            label = layers.label(name, self._underlying.root)
            try:
                asked = self._asked.pop(name, None)
                pool = asked.answer() if asked is not None else None
                waits = asked is not None and pool is None
                self._asked[name] = (
                    asked if asked and waits else Asking(name, self._underlying.root)
                )
            except UnseenError as error:
                return f"how full the thin pool {label} is cannot be seen: {error}"
            if pool is not None and (trouble := too_full(pool, FULL_TO_GO_ON)):
                return f"the thin pool {label} below {self._folder} {trouble}"
        return None
