"""The system's own checks: turned off if asked, and given back as they were."""

import shutil
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import AutotuneError
from autotune.service import take_over
from autotune.service.take_over import RECORD, found, give_back, take

pytestmark = pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
CRON = "57 0 * * 0 root /usr/share/mdadm/checkarray --cron --all\n"
DEFAULT = "# mdadm\nAUTOCHECK=true\nSTART_DAEMON=true\n"
TIMER = "mdcheck_start.timer"
UNIT = "[Timer]\nOnCalendar=Sun *-*-1..7 1:00:00\n[Install]\nWantedBy=timers.target\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with Debian's crontab, a timer, and an array."""
    fake_sysfs.raid6(tmp_path)
    units = tmp_path / "etc/systemd/system"
    for path, text in (
        (tmp_path / "etc/cron.d/mdadm", CRON),
        (tmp_path / "etc/default/mdadm", DEFAULT),
        (tmp_path / "usr/lib/systemd/system" / TIMER, UNIT),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (units / "timers.target.wants").mkdir(parents=True)
    (units / "timers.target.wants" / TIMER).symlink_to(tmp_path / "usr/lib/systemd/system" / TIMER)
    return tmp_path


def state(root: Path) -> dict[str, str]:
    """Every file and link below /etc, and what it says."""
    paths = sorted(path for path in (root / "etc").rglob("*") if not path.is_dir())
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_text("latin-1")
        for path in paths
    }


def default(root: Path) -> Path:
    return root / "etc/default/mdadm"


def test_what_is_taken_over_comes_back_as_it_was(root: Path) -> None:
    before = state(root)
    assert found(root) == ["/etc/cron.d/mdadm", TIMER]
    assert take(root) == ["/etc/cron.d/mdadm", TIMER]
    assert found(root) == []
    assert default(root).read_text() == DEFAULT.replace("true", "false", 1)
    assert (root / "etc/systemd/system" / TIMER).readlink() == Path("/dev/null")
    assert take(root) == []
    assert sorted(give_back(root)) == ["/etc/cron.d/mdadm", TIMER]
    assert state(root) == before
    assert give_back(root) == []


@pytest.mark.parametrize("cut_after", [0, 1, 2])
def test_a_crash_at_any_moment_loses_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, cut_after: int
) -> None:
    before, done = state(root), 0
    turn_off = take_over._turn_off

    class Crash(BaseException):
        pass

    def crashing(*words: object) -> None:
        nonlocal done
        if done == cut_after:
            raise Crash
        done += 1
        turn_off(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(take_over, "_turn_off", crashing)
    if cut_after < 2:
        with pytest.raises(Crash):
            take(root)
    else:
        take(root)
    monkeypatch.setattr(take_over, "_turn_off", turn_off)
    assert (root / RECORD).exists()
    # Taken again, or given back at once.
    if cut_after == 0:
        take(root)
        assert found(root) == []
    parts = [root / "etc/default/.mdadm.part", (root / RECORD).with_name(".taken-over.json.part")]
    for part in parts:
        part.touch()
    give_back(root)
    assert state(root) == before
    assert not any(part.exists() for part in parts)


def test_the_last_line_that_the_shell_reads_is_turned_off(root: Path) -> None:
    default(root).write_text("AUTOCHECK=false\nexport AUTOCHECK=true\n")
    before = state(root)
    take(root)
    assert found(root) == []
    assert "true" not in default(root).read_text()
    give_back(root)
    assert state(root) == before


def test_other_changes_of_the_file_stay(root: Path) -> None:
    take(root)
    text = default(root).read_text() + "VERBOSE=true\n"
    default(root).write_text(text)
    give_back(root)
    assert default(root).read_text() == DEFAULT + "VERBOSE=true\n"


def test_a_line_that_is_added_to_a_file_that_ended_in_none_stays_one(root: Path) -> None:
    path = root / "etc/default/mdadm"
    path.write_text("AUTOCHECK=true")
    take_over.take(root)
    with path.open("a") as file:
        file.write("X=1\n")
    take_over.give_back(root)
    assert path.read_text() == "AUTOCHECK=true\nX=1\n"


def test_a_file_that_lies_elsewhere_stays_there(root: Path) -> None:
    """As a configuration management has it."""
    switch, behind = root / "etc/default/mdadm", root / "site/mdadm"
    behind.parent.mkdir()
    before = switch.read_text()
    switch.rename(behind)
    switch.symlink_to(behind)
    take_over.take(root)
    assert switch.is_symlink()
    assert "AUTOCHECK=false" in behind.read_text()
    take_over.give_back(root)
    assert switch.is_symlink()
    assert behind.read_text() == before


def test_what_somebody_turned_on_again_is_left_alone(root: Path) -> None:
    take(root)
    default(root).write_text("AUTOCHECK=yes\n")
    assert give_back(root) == [TIMER]
    assert default(root).read_text() == "AUTOCHECK=yes\n"


def test_a_switch_that_was_not_there_goes_again(root: Path) -> None:
    default(root).unlink()
    assert take(root) == ["/etc/cron.d/mdadm", TIMER]
    assert default(root).read_text() == "AUTOCHECK=false\n"
    give_back(root)
    assert not default(root).exists()


def test_what_fails_half_way_leaves_all_as_it_was(root: Path) -> None:
    # A unit of the administrator's own cannot be masked.
    (root / "etc/systemd/system" / TIMER).write_text(UNIT)
    before = state(root)
    with pytest.raises(AutotuneError, match="were not turned off"):
        take(root)
    assert state(root) == before


@pytest.mark.parametrize("coding", ["latin-1", "utf-8"])
@pytest.mark.parametrize("added", ["", "VERBOSE=true\n"])
def test_a_file_is_kept_in_whatever_coding_it_is(root: Path, coding: str, added: str) -> None:
    text = f"# gepr\u00fcft\r\n{DEFAULT}"
    default(root).write_bytes(text.encode(coding))
    assert take(root) == ["/etc/cron.d/mdadm", TIMER]
    assert default(root).read_bytes() == text.replace("=true", "=false", 1).encode(coding)
    with default(root).open("a") as file:
        file.write(added)
    assert sorted(give_back(root)) == ["/etc/cron.d/mdadm", TIMER]
    assert default(root).read_bytes() == (text + added).encode(coding)


def test_what_an_earlier_version_turned_off_comes_back(root: Path) -> None:
    """It had such a file as text in its record."""
    text = "# gepr\u00fcft\n" + DEFAULT
    default(root).write_text(off := text.replace("=true", "=false", 1), "utf-8")
    change = take_over.File(source="/etc/cron.d/mdadm", before=text, after=off)
    take_over._save(take_over.TakenOver(changes=(change,)), root)
    assert give_back(root) == ["/etc/cron.d/mdadm"]
    assert default(root).read_text("utf-8") == text


def test_a_damaged_record_is_not_taken_for_none(root: Path) -> None:
    (root / RECORD).parent.mkdir()
    (root / RECORD).write_text("{")
    with pytest.raises(AutotuneError, match="turn them on by hand"):
        give_back(root)
