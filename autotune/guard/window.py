"""What a guard tells every few seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """What a report is made of: some seconds of the sync; its p99 is of the last half minute."""

    time_s: float
    """Since the epoch."""
    p99_ns: float | None
    p99_at_least_ns: float | None
    p99_at_most_ns: float | None
    """What is certain of it; by a probe these are the same."""
    samples: int
    source: str
    """Where the p99 is from: "accounting", "probe", or "none" while nobody is there."""
    sync_bytes_per_s: float
    """Of each member."""
    sync_speed_max_kib: int
    """What the sync is held to: the pace, or the limit that was found. Of each member, as all that
    is here."""
    foreground_iops: float | None
    share: float
    """Of the sync that is done, 0 to 1."""
    left_s: float | None
    """At the paces of the last minute."""
    left_low_s: float | None
    """If all users left."""
    left_high_s: float | None
    """If they stay."""
    out_of_reach: bool
    """The foreground is slower than the ceiling however slow the sync is."""
    finish_s: float | None
    """The deadline, in seconds since the epoch; None without one."""
    needed_kib: float | None
    """The pace that the deadline needs; None without one, or if it is lost."""
    impossible: bool
    """Deadline and ceiling exclude each other, or the deadline is lost even at full speed."""
    action: str = ""
    """What the sync is, as people call it."""
