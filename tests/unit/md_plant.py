"""A sync as md throttles it, and a foreground that waits for it, in time that passes as it is told.

The throttle is md_do_sync's (MD_FACTS §3): before each 128 KiB the mean speed since the oldest of
ten marks, which are three seconds apart, is held against the limits; above the upper one md
sleeps 500 ms. A request of the foreground takes some ms, and while the sync runs one in two has to
wait for the sync's next sleep besides, for 0.6 s at the most.
"""

import random
from collections import Counter, deque
from pathlib import Path

from autotune.measure.fio_output import Counters

MARKS, MARK_S, SLEEP_S = 10, 3.0, 0.5
STEP_S = 0.005
LONGEST_WAIT_S = 0.6


class Plant:
    """`free_kib`: what the disks sync in a second when nothing holds md back."""

    def __init__(self, free_kib: float = 40_000, iops: float = 60, size_kib: int = 1 << 40) -> None:
        self.free_kib = free_kib
        self.iops = iops
        self.limits = {"sync_speed_min": "1000 (system)", "sync_speed_max": "200000 (system)"}
        self.size_kib = size_kib
        self.action = "recover"
        self.clock = 1.0
        """How fast the kernel's own goes, by which it counts what requests take."""
        self.now_s = self.set_back_s = 0.0
        self.done_kib = 0.0
        self.cleans_until_s = 0.0
        """Until then md shows all of an interrupted sync, whose superblocks it writes."""
        self.frozen_until_s = 0.0
        self.counts = [0] * 17
        self.taken_s: list[tuple[float, float]] = []
        """When each request ended, and what it took."""
        self._rng = random.Random(0)
        self._marks = deque([(0.0, 0.0)], maxlen=MARKS)
        self._asleep_until_s = 0.0
        self._pending: list[tuple[float, float, bool]] = []
        self._arrives_s = 0.0

    @property
    def synced(self) -> bool:
        return self.done_kib >= self.size_kib

    def speed_kib(self, name: str) -> int:
        return int(self.limits[name].split()[0])

    def sleep(self, seconds: float) -> None:
        """Stands for time.sleep."""
        end = self.now_s + seconds
        while self.now_s < end:
            step = min(STEP_S, end - self.now_s)
            self.now_s += step
            runs = self._sync(step)
            self._serve(runs)

    def monotonic(self) -> float:
        return self.now_s

    CLOCK_BOOTTIME = 7

    def clock_gettime(self, _clock: int) -> float:
        return self.monotonic()

    def time(self) -> float:
        return self.now_s - self.set_back_s

    def _sync(self, step_s: float) -> bool:
        if self.synced or self.now_s < max(
            self._asleep_until_s, self.cleans_until_s, self.frozen_until_s
        ):
            return False
        if self.now_s - self._marks[-1][0] >= MARK_S:
            self._marks.append((self.now_s, self.done_kib))
        since_s, since_kib = self._marks[0]
        speed = (self.done_kib - since_kib) / (int(self.now_s - since_s) + 1) + 1
        if speed > self.speed_kib("sync_speed_min") and speed > self.speed_kib("sync_speed_max"):
            self._asleep_until_s = self.now_s + SLEEP_S
            return False
        self.done_kib = min(self.size_kib, self.done_kib + self.free_kib * step_s)
        return True

    def _serve(self, sync_runs: bool) -> None:
        while self.iops and self._arrives_s <= self.now_s:
            waits = sync_runs and self._rng.random() < 0.5
            base_s = 0.008 + self._rng.expovariate(1 / 0.006)
            self._pending.append((self._arrives_s, base_s, waits))
            self._arrives_s = max(self._arrives_s, self.now_s - 1) + self._rng.expovariate(
                self.iops
            )
        left = []
        for came_s, base_s, waits in self._pending:
            age_s = self.now_s - came_s
            if age_s < base_s or (waits and sync_runs and age_s < LONGEST_WAIT_S):
                left.append((came_s, base_s, waits))
                continue
            self.counts[0] += 1
            self.counts[3] += round(age_s * 1000 * self.clock)
            self.taken_s.append((self.now_s, age_s))
        self._pending = left
        self.counts[8] = len(left)

    def read(self, path: Path) -> str:
        """Stands for sysfs.read."""
        if path.name == "mdstat":
            done_kib = self.done_kib if self.now_s >= self.cleans_until_s else self.size_kib
            share = 100 * done_kib / self.size_kib
            if self.synced or self.now_s < self.frozen_until_s:
                return "md0 : active raid6 sda[0]\n      130048 blocks\n"
            return (
                "md0 : active raid6 sda[0]\n      [>....]  recovery = "
                f"{share:.1f}% ({int(done_kib)}/{self.size_kib}) finish=1.0min\n"
            )
        if path.name == "stat":
            return " ".join(map(str, self.counts))
        if path.name == "sync_action" and path.parent.parent.name == "md0":
            frozen = self.now_s < self.frozen_until_s
            return "frozen" if frozen else "idle" if self.synced else self.action
        if path.name in self.limits:
            return self.limits[path.name]
        return path.read_text().strip()

    def write(self, path: Path, text: str, timeout_s: float = 30.0) -> None:
        """Stands for sysfs.write; md takes a lowest speed above the highest, a test does not."""
        if path.name == "stripe_cache_size":
            return
        defaults = {"sync_speed_min": 1000, "sync_speed_max": 200_000, "sync_io_depth": 32}
        system = f"{defaults[path.name]} (system)"
        self.limits[path.name] = system if text == "system" else f"{text} (local)"
        assert self.speed_kib("sync_speed_min") <= self.speed_kib("sync_speed_max")

    def share_slow(self, ceiling_s: float, since_s: float) -> float:
        """The share of requests that took longer than the ceiling, of those since a moment."""
        latest = [taken for ended, taken in self.taken_s if ended >= since_s]
        return sum(taken > ceiling_s for taken in latest) / len(latest)


class PlantProbe:
    """Stands for the probe: of the requests that end, it sees one in three."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._said_s = plant.now_s

    def __enter__(self) -> "PlantProbe":
        return self

    def __exit__(self, *_: object) -> None: ...

    def look(self) -> Counters | None:
        now_s, since_s = self._plant.now_s, self._said_s
        if now_s - since_s < 1:
            return None
        self._said_s = now_s
        latest = [taken for ended, taken in self._plant.taken_s if ended > since_s][::3]
        reads = Counter(round(taken * 1e9) for taken in latest)
        return Counters(now_s - since_s, 0, reads, {})
