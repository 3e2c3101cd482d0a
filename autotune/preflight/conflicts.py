"""Other programs on this machine that set an array's knobs or start checks: found and named.

What ships where: MD_FACTS §5. The folders are those of udev(7), sysctl.d(5) and mdadm.conf(5).
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autotune.preflight import check_schedule
from autotune.system import sysfs
from autotune.system.array import Array

_KNOBS = re.compile(
    r"stripe_cache_size|sync_speed_min|sync_speed_max|read_ahead_kb|queue/scheduler|nr_requests|"
    r"group_thread_cnt|rmw_level|preread_bypass_threshold|max_sectors_kb|wbt_lat_usec|"
    r"sync_io_depth|safe_mode_delay|read_expire|fifo_batch|low_latency|queue_depth|rq_affinity|"
    r"bdi/read_ahead|--setra|\breadahead\b|\belevator\b|speed_limit_min|speed_limit_max"
)
_OTHER_NAMES = {
    "queue/scheduler": "scheduler",
    "elevator": "scheduler",
    "bdi/read_ahead": "read_ahead_kb",
    "--setra": "read_ahead_kb",
    "readahead": "read_ahead_kb",
    "speed_limit_min": "sync_speed_min",
    "speed_limit_max": "sync_speed_max",
    # A rule seldom tells whether it is the array's file or the disks'.
    "array_max_sectors_kb": "max_sectors_kb",
}
_MATCH = re.compile(r'[A-Z]+(\{[^}]*\})?\s*[!=]=\s*"[^"]*"')
"""What a udev rule asks, beside what it does."""
_UDEV = (
    *("etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d"),
    *("usr/lib/udev/rules.d", "lib/udev/rules.d"),
)
_SYSCTL = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d")
_MDADM = ("etc/mdadm/mdadm.conf", "etc/mdadm.conf")
_TUNED = ("etc/tuned/profiles", "usr/lib/tuned/profiles", "etc/tuned", "usr/lib/tuned")
"""Those of TuneD 2.23 and later first: it no longer reads what an upgrade left in the others."""


@dataclass(frozen=True)
class Rival:
    """What sets knobs, or, if these are none, starts checks: a sentence with its place."""

    text: str
    knobs: frozenset[str]


def find(array: Array) -> list[str]:
    """A sentence for each rival, with its file and line."""
    return [rival.text for rival in _all(array.root)]


def setting(array: Array, knobs: Collection[str]) -> list[str]:
    """The sentences of those that set one of these knobs."""
    wanted = {_OTHER_NAMES.get(name, name) for name in knobs}
    return [rival.text for rival in _all(array.root) if rival.knobs & wanted]


def _all(root: Path) -> list[Rival]:
    return [*_tuned(root), *_udev(root), *_sysctl(root), *_mdadm_conf(root), *_checks(root)]


def _knobs(text: str) -> frozenset[str]:
    return frozenset(_OTHER_NAMES.get(name, name) for name in _KNOBS.findall(text))


def _tuned(root: Path) -> Iterator[Rival]:
    """The active profiles and those that they include; one in /etc hides one in /usr/lib."""
    active = sysfs.read_or(root / "etc/tuned/active_profile", "").split()
    waiting, seen = list(active), set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or "/" in name:
            continue
        seen.add(name)
        files = [root / folder / name / "tuned.conf" for folder in _TUNED]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            yield Rival(
                f"TuneD is active with the profile {name} (/etc/tuned/active_profile), which may "
                "set read-ahead and scheduler; check it with `tuned-adm active`.",
                frozenset(("read_ahead_kb", "scheduler")),
            )
            continue
        for place, line in _lines(file, root):
            key, _, value = line.partition("=")
            if key.strip() == "include":
                waiting += re.split(r"[\s,;]+", value.strip())
            elif _knobs(key):
                yield Rival(
                    f"TuneD's profile {name} is active and sets a value at {place} ({line}); "
                    "choose another with `tuned-adm profile` if that is for this array or its "
                    "disks.",
                    _knobs(key),
                )


def _udev(root: Path) -> Iterator[Rival]:
    """Rules files; one in /etc hides one of the same name in /usr/lib."""
    seen: set[str] = set()
    for folder in _UDEV:
        for file in sorted((root / folder).glob("*.rules")):
            # /lib is /usr/lib on most systems; and what autotune itself wrote is no rival.
            if file.name in seen or re.match("9[89]-autotune-", file.name):
                continue
            seen.add(file.name)
            for place, line in _lines(file, root):
                knobs = _knobs(_MATCH.sub("", line))
                # A zoned disk cannot be a member.
                if not knobs or "queue/zoned" in line:
                    continue
                maker = "openmediavault" if "openmediavault" in f"{file.name}{line}" else "udev"
                yield Rival(
                    f"A rule of {maker} at {place} sets {', '.join(sorted(knobs))} and may do so "
                    "again at any time; disable it if it matches this array or its disks.",
                    knobs,
                )


def _sysctl(root: Path) -> Iterator[Rival]:
    files = [root / "etc/sysctl.conf"]
    for folder in _SYSCTL:
        files += sorted((root / folder).glob("*.conf"))
    for file in files:
        for place, line in _lines(file, root):
            if re.match(r"-?dev[./]raid[./](speed_limit|sync_io_depth)", line):
                yield Rival(
                    f"{place} sets the sync speed of all arrays that have none of their own "
                    f"({line}).",
                    _knobs(line),
                )


def _mdadm_conf(root: Path) -> Iterator[Rival]:
    files = [root / name for name in _MDADM]
    for name in _MDADM:
        files += sorted((root / f"{name}.d").glob("*.conf"))
    for file in files:
        for place, line in _lines(file, root):
            if line.upper().startswith("SYSFS"):
                text = (
                    f"mdadm sets values when it assembles an array, from {place} ({line}); take "
                    "that line out if it is for this array."
                )
                yield Rival(text, _knobs(line))


def _checks(root: Path) -> Iterator[Rival]:
    for each in check_schedule.scheduled(root, datetime.now().astimezone()):
        when = f"; next: {check_schedule.show_moment(each.when)}" if each.when else ""
        yield Rival(
            f"{each.source} starts checks of the arrays{when}. A check that starts during a run "
            "ends the run, so choose a time well before or after it; a run that would still go on "
            "then does not begin.",
            frozenset(),
        )


def _lines(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Each line that is no comment, with "/file:number". Unreadable files have none."""
    for number, line in enumerate(sysfs.read_or(file, "").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield f"/{file.relative_to(root)}:{number}", text
