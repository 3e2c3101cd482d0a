"""When the machine's own checks of its arrays start next: timers of systemd, and crontabs."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from autotune.system import sysfs

_GOES_ON = "mdcheck_continue.timer"
_TIMERS = ("mdcheck_start.timer", _GOES_ON, "raid-check.timer")
_CRON = "run/crond.pid"
"""Where cron runs; in the lab, as an example, it does not."""
_FIRST_WEEK = re.compile(r"date \+\\?%d\)?\s*\]?.*-le 7")
"""Debian's crontab starts on each Sunday, and ends at once unless it is the month's first."""
_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOST_DAYS = 366
_TIMEOUT_S = 5


@dataclass(frozen=True)
class Switch:
    """What the administrator turns a crontab's checks off with: a line in a file of its own."""

    file: str
    key: str
    off: str

    @property
    def start(self) -> str:
        """What such a line starts with, as a pattern. Of several, the last one counts."""
        return rf"^[ \t]*(?:export[ \t]+)?{self.key}="


SWITCHES = {
    # Debian's checkarray, Fedora's raid-check.
    "/etc/cron.d/mdadm": Switch("etc/default/mdadm", "AUTOCHECK", "false"),
    "/etc/cron.d/raid-check": Switch("etc/sysconfig/raid-check", "ENABLED", "no"),
}


@dataclass(frozen=True)
class Scheduled:
    """A file or timer that starts checks, and when next; None if that is not known."""

    source: str
    when: datetime | None


def scheduled(root: Path, now: datetime) -> Iterator[Scheduled]:
    """Everything that starts checks on this machine."""
    for source, switch in SWITCHES.items():
        crontab = root / source.lstrip("/")
        if crontab.is_file() and not _is_off(root, switch):
            yield Scheduled(source, next_in_crontab(sysfs.read_or(crontab, ""), now))
    for timer in _TIMERS:
        units = root / "etc/systemd/system"
        if any(units.glob(f"*.wants/{timer}")) and not is_masked(root, timer):
            yield Scheduled(timer, _next_of_timer(timer) if root == Path("/") else None)


def skipped(root: Path, now: datetime, within_s: float) -> str | None:
    """Why nothing that checks an array for some seconds may begin now and take so long, in a
    sentence: while it does, a check that is started is skipped, and nobody is told (mdcheck,
    checkarray); the next may be that of the next month."""
    for each in scheduled(root, now):
        # This one goes on with a check that is begun, the next night, too.
        if each.when is None or each.source == _GOES_ON:
            continue
        if each.source in SWITCHES and not (root / _CRON).exists():
            continue
        if now <= each.when <= now + timedelta(seconds=within_s):
            return (
                f"{each.source} starts checks of the arrays at {show_moment(each.when)}, which are "
                "skipped if they find a check of autotune's; wait until they are over, or allow "
                "less time (--time)."
            )
    return None


def show_moment(when: datetime) -> str:
    return when.strftime("%a %Y-%m-%d %H:%M")


def _is_off(root: Path, switch: Switch) -> bool:
    """Whether what the crontab starts is told to do nothing."""
    text = sysfs.read_or(root / switch.file, "")
    values = re.findall(rf"{switch.start}(.*)$", text, re.M)
    return bool(values) and re.match(r"[\"']?(?:false|no|0)\b", values[-1]) is not None


def is_masked(root: Path, unit: str) -> bool:
    """Whether systemd is told never to start a unit."""
    link = root / "etc/systemd/system" / unit
    return link.is_symlink() and str(link.readlink()) == "/dev/null"


def _next_of_timer(timer: str) -> datetime | None:
    command = ("systemctl", "show", "--property=NextElapseUSecRealtime", "--value", timer)
    # --timestamp=unix says nothing of this property (systemd 252).
    utc = {**os.environ, "TZ": "UTC"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            env=utc,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", done.stdout.strip())
    return datetime.fromisoformat(f"{found[1]}+00:00").astimezone() if found else None


def next_in_crontab(text: str, now: datetime) -> datetime | None:
    """When the first command of a system crontab starts next; None if that cannot be told."""
    found = [
        moment
        for line in text.splitlines()
        if len(fields := line.split(None, 6)) == 7 and not line.lstrip().startswith("#")
        if (moment := _next(fields[:5], now, bool(_FIRST_WEEK.search(fields[6])))) is not None
    ]
    return min(found, default=None)


def _next(fields: Sequence[str], now: datetime, first_week: bool) -> datetime | None:
    """The five fields of crontab(5), days and hours as numbers or names."""
    sets = [_values(text, *span) for text, span in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (each or set() for each in sets)
    if None in sets or not minutes or not hours:
        return None
    weekdays = {day % 7 for day in weekdays}
    either = "*" not in (fields[2][0], fields[4][0])
    for ahead in range(_MOST_DAYS):
        day = (now + timedelta(days=ahead)).date()
        matches = (day.day in days, day.isoweekday() % 7 in weekdays)
        if day.month not in months or (first_week and day.day > 7):
            continue
        # Where both are restricted, one of them is enough.
        if not (any(matches) if either else all(matches)):
            continue
        for hour in sorted(hours):
            for minute in sorted(minutes):
                moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=now.tzinfo)
                if moment > now:
                    return moment
    return None


def _values(text: str, low: int, high: int) -> set[int] | None:
    """The numbers that a field stands for; None if it is not understood."""
    values: set[int] = set()
    for part in text.lower().split(","):
        found = re.fullmatch(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?", part)
        if found is None:
            return None
        first, last, step = found.groups()
        start = low if first == "*" else _number(first)
        end = high if first == "*" else _number(last) if last else start
        if start is None or end is None or not low <= start <= end <= high or step == "0":
            return None
        values.update(range(start, end + 1, int(step or 1)))
    return values


def _number(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    return _DAYS.index(text) if text in _DAYS else None
