"""A check as md does it (md_do_sync, action_store, min_sync_store, max_sync_store).

The test says how far the disks come."""

from pathlib import Path

from autotune.errors import InfeasibleError

UNIT = 128
MAX = 1 << 64
"""What `sync_max` is at "max"."""


class MdCheck:
    """An array of `size` sectors; `read` are the ranges that were read, in order."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.size = size
        self.files = {"degraded": "0", "mismatch_cnt": "0", "component_size": str(size // 2)}
        self.low, self.high = 0, MAX
        """`sync_min` and `sync_max`."""
        self.action = "idle"
        self.position = self.completed = 0
        self.read_ranges: list[tuple[int, int]] = []
        self.bad: set[int] = set()
        """Sectors of stripes that differ."""
        self.begins = True
        """Whether a check gets past what comes before it."""
        self.waits = False
        """Whether a check waits for that of an array beside."""
        self.at_once = True
        """Whether so little that nobody sees it under way is read as soon as it is begun."""
        self.cleans_looks = self._cleaning = 0
        """How often it still reads "check" after its end: until the superblocks are written."""
        self.writes: list[tuple[str, str]] = []

    def _end(self) -> None:
        self.action, self._cleaning = "idle", self.cleans_looks

    def go(self, sectors: int) -> None:
        """Let the disks read on, as far as `sync_max` lets them."""
        if self.action != "check" or not self.begins:
            return
        start = self.position
        self.position = min(start + sectors, self.high, self.size)
        if self.position > start:
            self.read_ranges.append((start, self.position))
            found = sum(8 for at in self.bad if start <= at < self.position)
            self.files["mismatch_cnt"] = str(int(self.files["mismatch_cnt"]) + found)
        if (self.position - self.completed) * 2 >= min(self.high, self.size) - self.completed:
            self.completed = self.position
        if self.position == self.size:
            self.low, self.high = 0, MAX
            self._end()

    def interrupt(self) -> None:
        """As `idle` does, or a member that fails."""
        if self.action == "check":
            self.low = self.completed
            self._end()

    def read(self, path: Path) -> str:
        """Stands for sysfs.read."""
        name = path.name
        if self._cleaning and name == "sync_action":
            self._cleaning -= 1
            return "check"
        if name == "mdstat":
            if self._cleaning:
                at = f"({self.size // 2}/{self.size // 2})"
                return f"md0 : active raid6 sda[0]\n      [====]  check =100.0% {at} finish=0min\n"
            if self.action == "check" and self.begins and not self.waits:
                at = f"({self.position // 2}/{self.size // 2})"
                return f"md0 : active raid6 sda[0]\n      [>....]  check = 1.0% {at} finish=1min\n"
            return "md0 : active raid6 sda[0]\n"
        if name == "sync_completed":
            # Until the check begins, it is that of the sync before.
            at = "delayed" if self.waits else f"{self.completed} / {self.size}"
            return at if self.action == "check" else "none"
        shown = {
            "sync_action": self.action,
            "sync_min": str(self.low),
            "sync_max": "max" if self.high == MAX else str(self.high),
        }
        return shown.get(name) or self.files.get(name) or path.read_text().strip()

    def read_or(self, path: Path, otherwise: str) -> str:
        """Stands for sysfs.read_or."""
        try:
            return self.read(path)
        except OSError:
            return otherwise

    def write(self, path: Path, text: str, timeout_s: float = 30.0) -> None:
        """Stands for sysfs.write, with the kernel's refusals."""
        name, runs = path.name, self.action == "check"
        self.writes.append((name, text))
        if name == "sync_min":
            if int(text) > self.high or runs:
                raise InfeasibleError(f"sync_min {text}: EINVAL or EBUSY")
            self.low = int(text) // 8 * 8
        elif name == "sync_max":
            high = MAX if text == "max" else int(text)
            if text != "max" and (high < self.low or high % UNIT or (runs and high < self.high)):
                raise InfeasibleError(f"sync_max {text}: EINVAL or EBUSY")
            self.high = high
        elif text == "idle":
            self.interrupt()
        elif name != "sync_action":
            path.write_text(f"{text}\n")
        else:
            assert text == "check"
            self.action, self._cleaning = "check", 0
            if self.begins:
                self.position = self.completed = self.low
                self.files["mismatch_cnt"] = "0"
                if self.at_once and self.size - self.low <= UNIT:
                    self.go(UNIT)
