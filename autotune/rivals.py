"""Other things on this machine that set an array's knobs or start checks: found and named.

What ships where: MD_FACTS §5. The folders are those of udev(7), sysctl.d(5) and mdadm.conf(5).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from autotune import sysfs
from autotune.array import Array

_KNOBS = re.compile(
    r"stripe_cache_size|sync_speed_(min|max)|read_ahead_kb|queue/scheduler|nr_requests|"
    r"group_thread_cnt|rmw_level|preread_bypass_threshold|max_sectors_kb|wbt_lat_usec|"
    r"sync_io_depth|bdi/read_ahead"
)
_UDEV = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
_SYSCTL = ("etc/sysctl.d", "run/sysctl.d", "usr/lib/sysctl.d")
_CHECKS = ("etc/cron.d/mdadm", "etc/cron.d/raid-check")
_TIMERS = ("mdcheck_start.timer", "mdcheck_continue.timer", "raid-check.timer")


def find(array: Array) -> list[str]:
    """A sentence for each rival, with its file and line."""
    root = array.root
    return [*_tuned(root), *_udev(root), *_sysctl(root), *_mdadm_conf(root), *_checks(root)]


def _tuned(root: Path) -> Iterator[str]:
    profile = sysfs.read_or(root / "etc/tuned/active_profile", "")
    if profile:
        yield (
            f"TuneD is active with the profile {profile} (/etc/tuned/active_profile), which may "
            "set read-ahead and scheduler; check it with `tuned-adm active`."
        )


def _udev(root: Path) -> Iterator[str]:
    """Rules files; one in /etc hides one of the same name in /usr/lib."""
    seen: set[str] = set()
    for folder in _UDEV:
        for file in sorted((root / folder).glob("*.rules")):
            if file.name in seen:
                continue
            seen.add(file.name)
            for place, line in _lines(file, root):
                if not _KNOBS.search(line) or "autotune" in file.name:
                    continue
                maker = "openmediavault" if "openmediavault" in f"{file.name}{line}" else "udev"
                yield (
                    f"A rule of {maker} at {place} sets one of the knobs and may set it again "
                    "in the middle of a run; disable it if it matches this array or its disks."
                )


def _sysctl(root: Path) -> Iterator[str]:
    files = [root / "etc/sysctl.conf"]
    for folder in _SYSCTL:
        files += sorted((root / folder).glob("*.conf"))
    for file in files:
        for place, line in _lines(file, root):
            if re.match(r"-?dev[./]raid[./]speed_limit", line):
                yield f"{place} sets the sync speed of all arrays ({line})."


def _mdadm_conf(root: Path) -> Iterator[str]:
    for file in (root / "etc/mdadm/mdadm.conf", root / "etc/mdadm.conf"):
        for place, line in _lines(file, root):
            if line.upper().startswith("SYSFS"):
                yield f"mdadm sets knobs when it assembles an array, from {place} ({line})."


def _checks(root: Path) -> Iterator[str]:
    for name in _CHECKS:
        if (root / name).exists():
            yield f"/{name} starts checks of the arrays; one that starts during a run ends it."
    for timer in _TIMERS:
        wanted = sorted((root / "etc/systemd/system").glob(f"*.wants/{timer}"))
        if wanted:
            yield f"The timer {timer} starts checks; one that starts during a run ends it."


def _lines(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Each line that is no comment, with "/file:number". Unreadable files have none."""
    for number, line in enumerate(sysfs.read_or(file, "").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield f"/{file.relative_to(root)}:{number}", text
