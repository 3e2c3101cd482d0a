"""A forecast as a check of four hard disks gives one."""

from autotune.problem.figure import Estimate
from autotune.sync_forecast.model import Forecast, SpeedPoint
from autotune.sync_forecast.platter import assumed

MS = 1e6


def point(kib_s: float, p99_ms: float, spread: float = 0.05) -> SpeedPoint:
    return SpeedPoint(kib_s, Estimate(p99_ms / 4 * MS, spread), Estimate(p99_ms * MS, spread), 900)


POINTS = (
    point(0, 12),
    point(10_000, 20),
    point(40_000, 30),
    point(80_000, 50),
    point(140_000, 110),
)


def some_forecast(
    points: tuple[SpeedPoint, ...] = POINTS, limit_kib_s: float = 200_000
) -> Forecast:
    """Disks of 20 TB that sync at 200 to 100 MB/s."""
    return Forecast(
        device="/dev/md0",
        uuid="ab" * 16,
        level="raid6",
        raid_disks=5,
        media="hdd",
        made_s=1_800_000_000.0,
        seconds=230.0,
        member_kib=20_000_000_000 // 1024 * 1000,
        limit_kib_s=limit_kib_s,
        platter=assumed(200_000),
        places_measured=True,
        rate_spread=0.02,
        points=points,
        source="accounting",
        busy=True,
    )
