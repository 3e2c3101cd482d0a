"""When scheduled checks start next."""

import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from autotune.preflight import check_schedule
from autotune.preflight.check_schedule import next_in_crontab, scheduled, skipped

NOW = datetime(2026, 11, 22, 12, 30)  # A crontab speaks of local time.
DEBIAN = (
    "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && [ $(date +\\%d) -le 7 ]; then "
    "/usr/share/mdadm/checkarray --cron --all --idle --quiet; fi"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # A Sunday past noon: the month's first Sunday is the next month's.
        (DEBIAN, "2026-12-06 00:57"),
        ("0 1 * * Sun root /usr/sbin/raid-check", "2026-11-29 01:00"),
        ("0 1 * * 7 root x", "2026-11-29 01:00"),
        ("31 12 * * * root x", "2026-11-22 12:31"),
        ("30 12 * * * root x", "2026-11-23 12:30"),
        ("*/20 4-6 1 * * root x", "2026-12-01 04:00"),
        # Where both the day of the month and that of the week are named, either will do.
        ("0 3 1,15 * mon root x", "2026-11-23 03:00"),
        ("0 3 29 2 * root x", None),
        ("0 3 * jan * root x", None),
        ("61 3 * * * root x", None),
        ("# 0 3 * * * root x", None),
        ("SHELL=/bin/sh", None),
    ],
)
def test_the_next_time_of_a_crontab(line: str, expected: str | None) -> None:
    found = next_in_crontab(line + "\n", NOW)
    assert (found and found.strftime("%Y-%m-%d %H:%M")) == expected


def test_the_earliest_line_counts() -> None:
    text = f"{DEBIAN}\n0 5 * * * root x\n"
    assert next_in_crontab(text, NOW) == datetime(2026, 11, 23, 5, 0)


def test_a_file_that_is_switched_off_starts_nothing(tmp_path: Path) -> None:
    crontab = tmp_path / "etc/cron.d/mdadm"
    crontab.parent.mkdir(parents=True)
    crontab.write_text(DEBIAN + "\n")
    (found,) = scheduled(tmp_path, NOW)
    assert (found.source, found.when) == ("/etc/cron.d/mdadm", datetime(2026, 12, 6, 0, 57))
    default = tmp_path / "etc/default/mdadm"
    default.parent.mkdir()
    default.write_text("AUTOCHECK=false\nexport AUTOCHECK=true\n")
    assert list(scheduled(tmp_path, NOW))
    default.write_text("AUTOCHECK=true\nAUTOCHECK=false\n")
    assert list(scheduled(tmp_path, NOW)) == []


@pytest.mark.parametrize(
    ("now", "within_s", "skips"),
    [
        (datetime(2026, 12, 6, 0, 30), 1800, True),
        (datetime(2026, 12, 6, 0, 30), 1500, False),
        (datetime(2026, 12, 6, 0, 58), 1800, False),
    ],
)
def test_nothing_begins_that_a_scheduled_check_would_find(
    tmp_path: Path, now: datetime, within_s: float, skips: bool
) -> None:
    crontab = tmp_path / "etc/cron.d/mdadm"
    crontab.parent.mkdir(parents=True)
    crontab.write_text(DEBIAN + "\n")
    assert not skipped(tmp_path, now, within_s), "no cron runs"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/crond.pid").write_text("7\n")
    assert bool(skipped(tmp_path, now, within_s)) == skips


@pytest.mark.parametrize(
    ("timer", "said", "skips"),
    [
        ("mdcheck_start.timer", "Sun 2026-12-06 01:00:00 UTC", True),
        ("mdcheck_start.timer", "", False),
        ("mdcheck_continue.timer", "Sun 2026-12-06 01:00:00 UTC", False),
    ],
)
def test_so_does_none_that_a_timer_would(
    monkeypatch: pytest.MonkeyPatch, timer: str, said: str, skips: bool
) -> None:
    monkeypatch.setattr(check_schedule, "_TIMERS", (timer,))
    monkeypatch.setattr(check_schedule, "SWITCHES", {})
    monkeypatch.setattr(Path, "glob", lambda *_: iter([Path("x")]))
    monkeypatch.setattr(check_schedule, "is_masked", lambda *_: False)
    told = subprocess.CompletedProcess([], 0, said + "\n")
    monkeypatch.setattr(check_schedule.subprocess, "run", lambda *_, **_how: told)
    now = datetime.fromtimestamp(1796518800 - 600).astimezone()
    assert bool(skipped(Path("/"), now, 1800)) == skips


def test_fedoras_switch_and_a_masked_timer_count_as_off(tmp_path: Path) -> None:
    crontab, switch = tmp_path / "etc/cron.d/raid-check", tmp_path / "etc/sysconfig/raid-check"
    units = tmp_path / "etc/systemd/system"
    for folder in (crontab.parent, switch.parent, units / "timers.target.wants"):
        folder.mkdir(parents=True)
    crontab.write_text("0 1 * * Sun root /usr/sbin/raid-check\n")
    (units / "timers.target.wants/raid-check.timer").symlink_to(crontab)
    found = [each.source for each in scheduled(tmp_path, NOW)]
    assert found == ["/etc/cron.d/raid-check", "raid-check.timer"]
    switch.write_text("# raid-check\nENABLED=no\n")
    (units / "raid-check.timer").symlink_to("/dev/null")
    assert list(scheduled(tmp_path, NOW)) == []
