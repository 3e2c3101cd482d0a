"""The units that are shipped: systemd takes them, and they go in and out without trace."""

import configparser
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fake_sysfs
import pytest

from autotune import durable
from autotune.cli.config import _what_follows
from autotune.errors import AutotuneError, RefusalError
from autotune.service import install
from autotune.service.config import load_config
from autotune.service.install import SHIPPED_COMMAND, units
from autotune.service.own_units import marked
from autotune.system.array import find_array

AUTOTUNE = Path(sys.executable).with_name("autotune")
NEEDS_SYSTEMD = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="needs systemd-analyze"
)
GUARD = "autotune-guard@f6e606b3:8ce3aa59:41c0aa90:d0ab4f9c.service"
CHECK = "autotune-check@f6e606b3:8ce3aa59:41c0aa90:d0ab4f9c"
MOST_EXPOSED = 4.5
"""Of 10, as `systemd-analyze security` counts; it calls up to 4.9 OK."""


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(units()[name])
    return parser


@NEEDS_SYSTEMD
def test_systemd_takes_the_units_as_they_are(tmp_path: Path) -> None:
    # The command lies elsewhere here, and verify looks for it.
    for name, text in units().items():
        file = tmp_path / name.replace("@", "@md0")
        file.write_text(text.replace(SHIPPED_COMMAND, str(AUTOTUNE)))
    files = sorted(tmp_path.iterdir())
    done = subprocess.run(
        ["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "autotune" in line]
    assert (done.returncode, ours) == (0, [])


@NEEDS_SYSTEMD
@pytest.mark.parametrize("name", [n for n in units() if n.endswith(".service")])
def test_a_unit_is_exposed_to_little(tmp_path: Path, name: str) -> None:
    copy = tmp_path / name
    copy.write_text(units()[name])
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", copy],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    print(found[0])
    assert float(found[1]) <= MOST_EXPOSED


@pytest.mark.parametrize("name", [n for n in units() if n.endswith(".service")])
def test_a_unit_starts_though_its_folders_are_not_there(name: str) -> None:
    """Without "-", systemd refuses to start one whose ReadWritePaths= are not there."""
    service = unit(name)["Service"]
    if service.get("ProtectSystem") == "strict":
        assert service["StateDirectory"] == "autotune"
        assert service["StateDirectoryMode"] == "0700"
    assert all(path.startswith("-") for path in service.get("ReadWritePaths", "").split())


def test_it_restores_once_the_filesystems_are_there() -> None:
    parser = unit("autotune-restore.service")
    assert parser["Unit"]["After"] == "local-fs.target"
    assert parser["Unit"]["ConditionDirectoryNotEmpty"] == "/var/lib/autotune/journal"
    service, restore = parser["Service"], f"{SHIPPED_COMMAND} restore --abandoned"
    assert (service["Type"], service["ExecStart"]) == ("oneshot", restore)
    # What waits for the end of a sync outlives it.
    assert service["KillMode"] == "process"
    assert parser["Install"]["WantedBy"] == "multi-user.target"


def test_what_was_killed_with_its_guardian_is_looked_for_every_few_minutes() -> None:
    """A rebuild would stand still at the bound of a killed check."""
    timer = unit("autotune-restore.timer")
    assert timer["Timer"]["OnCalendar"] == "*:0/5"
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert "autotune-restore.timer" in install.ENABLED
    assert unit("autotune-restore.service")["Install"]["Also"] == "autotune-restore.timer"


def test_a_guard_waits_for_as_long_as_its_array_is_there() -> None:
    parser = unit("autotune-guard@.service")
    # As `systemd-escape --path /dev/disk/by-id/md-uuid-…` has it.
    device = r"dev-disk-by\x2did-md\x2duuid\x2d%i.device"
    assert parser["Unit"]["BindsTo"] == parser["Install"]["WantedBy"] == device
    service = parser["Service"]
    guard = f"{SHIPPED_COMMAND} guard /dev/disk/by-id/md-uuid-%i --wait"
    assert service["ExecStart"] == guard
    # It writes below /sys, and its journal and lock have to be where every command looks.
    assert "ProtectKernelTunables" not in service
    assert service["StateDirectory"] == service["RuntimeDirectory"] == "autotune"


def test_a_check_is_looked_for_each_hour() -> None:
    service, timer = unit("autotune-check@.service")["Service"], unit("autotune-check@.timer")
    by_uuid = "/dev/disk/by-id/md-uuid-%i"
    assert service["ExecStart"] == f"{SHIPPED_COMMAND} check {by_uuid} --scheduled"
    assert service["Type"] == "oneshot"
    # It writes below /sys, and its journal and lock have to be where every command looks.
    assert "ProtectKernelTunables" not in service
    assert service["StateDirectory"] == service["RuntimeDirectory"] == "autotune"
    # A window that opens within the hour is waited for.
    assert timer["Timer"]["OnCalendar"] == "hourly"
    assert timer["Install"]["WantedBy"] == "timers.target"


@pytest.mark.parametrize(
    "name", ["autotune-retune.service", "autotune-guard@.service", "autotune-check@.service"]
)
def test_a_stop_leaves_the_guardian_alive(name: str) -> None:
    assert unit(name)["Service"]["KillMode"] == "process"


@pytest.mark.parametrize("name", [n for n in units() if n.endswith(".service")])
def test_a_unit_may_open_its_array(name: str) -> None:
    # Each of these lists devices, and systemd before 253 denies those that are not listed.
    assert not {"ProtectClock", "PrivateDevices", "DevicePolicy", "DeviceAllow"} & set(
        unit(name)["Service"]
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake_sysfs.raid6(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(AUTOTUNE)])
    monkeypatch.setattr(install, "PRIVATE", ())
    config = tmp_path / "etc/autotune/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[defaults]\nguard_p99 = '40ms'\ncheck_every = '30d'\n")
    return tmp_path


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_it_goes_in_and_out_without_trace(root: Path) -> None:
    before = sorted(root.rglob("*"))
    assert set(install.status(root).values()) == {"missing"}
    written = install.install(root)
    assert all(str(AUTOTUNE) in path.read_text() for path in written if path.suffix == ".service")
    assert set(install.status(root).values()) == {"as shipped"}
    wants = root / "etc/systemd/system/timers.target.wants/autotune-retune.timer"
    assert wants.is_symlink()
    (guard,) = root.glob(r"etc/systemd/system/dev-disk-by\x2did-md\x2duuid\x2d*.wants/*")
    assert guard.name == GUARD
    assert f"{GUARD}.d/array.conf" in map(str, (p.relative_to(p.parents[1]) for p in written))
    check = root / f"etc/systemd/system/timers.target.wants/{CHECK}.timer"
    assert check.is_symlink()
    written[0].write_bytes("f\u00fcr".encode("latin-1"))
    assert "changed" in install.status(root).values()
    (kept,) = install.others(root).values()
    assert install.remove(root) == written
    left = [path for path in sorted(root.rglob("*")) if path not in before and not path.is_dir()]
    assert left == [kept]
    assert kept.suffix == ".kept"
    assert install.remove(root) == []


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_what_somebody_else_has_made_of_a_unit_is_not_replaced(root: Path) -> None:
    written = install.install(root)
    unit = root / install.FOLDER / "autotune-retune.timer"
    text = unit.read_text()
    for others in (text.replace("Sun 02:00", "monthly"), "", f"{text}# and more\n"):
        unit.write_text(others)
        with pytest.raises(RefusalError, match=r"retune\.timer is not as autotune wrote it"):
            install.install(root)
        assert unit.read_text() == others
    install.remove(root)
    unit.symlink_to("/dev/null")
    with pytest.raises(RefusalError, match=r"`systemctl unmask autotune-retune\.timer`"):
        install.install(root)
    assert install.remove(root) == []
    assert str(unit.readlink()) == "/dev/null"
    unit.unlink()
    assert install.install(root) == written


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_nothing_of_somebody_elses_is_lost_with_a_removal(root: Path) -> None:
    """Neither what an earlier one has kept, nor what is beside a guard's unit."""
    install.install(root)
    unit = root / install.FOLDER / "autotune-retune.service"
    earlier = unit.with_name(f"{unit.name}.kept")
    earlier.write_text("earlier\n")
    unit.write_text("theirs\n")
    beside = next(iter((root / install.FOLDER).glob(f"*.d/{install.ARRAY_DROP_IN}")))
    beside.write_text("[Service]\nNice=5\n")
    kept = install.others(root)
    assert set(kept) == {unit, beside}
    install.remove(root)
    assert earlier.read_text() == "earlier\n"
    assert kept[unit].read_text() == "theirs\n"
    assert kept[beside].read_text() == "[Service]\nNice=5\n"


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_a_unit_of_another_version_is_replaced(root: Path) -> None:
    """Before this version, units had no checksum."""
    earlier = Path(__file__).parents[1] / "recorded/2026-11/etc/systemd/system"
    shutil.copytree(earlier, folder := root / install.FOLDER, symlinks=True)
    service = folder / "autotune-retune.service"
    text = service.read_text()
    service.write_text(text.replace("=/usr/local/bin/", "=/opt/"))
    (folder / "autotune-check@.timer").write_text(marked("[Timer]\nOnCalendar=daily\n"))
    (folder / install.DROP_IN).write_text(
        '# Where the arrays are mounted.\n[Service]\nReadWritePaths=-"/srv"\n'
    )
    install.install(root)
    assert set(install.status(root).values()) == {"as shipped"}
    service.write_text(text.replace("TimeoutStopSec=60", "TimeoutStopSec=5"))
    with pytest.raises(RefusalError, match=r"retune\.service is not as"):
        install.install(root)


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
@pytest.mark.parametrize("left", ["autotune-guard@.service", str(install.DROP_IN)])
def test_what_a_removal_that_was_cut_has_left_is_removed(root: Path, left: str) -> None:
    """None of it is what is enabled."""
    install.install(root)
    file = root / install.FOLDER / left
    text = file.read_text()
    install.remove(root)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert install.remove(root) == [file]
    assert install.remove(root) == []


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_what_an_installation_that_was_cut_was_writing_is_removed(root: Path) -> None:
    before = sorted(root.rglob("*"))
    install.install(root)
    folder = root / install.FOLDER
    for name in ("autotune-retune.service", str(install.DROP_IN)):
        durable.beside(folder / name).write_text("[Unit]\n")
    install.remove(root)
    assert [
        path for path in root.rglob("*") if "autotune" in path.name and path not in before
    ] == []


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_a_guard_that_is_not_wanted_any_more_goes_with_the_next_installation(root: Path) -> None:
    install.install(root)
    (root / "etc/autotune/config.toml").unlink()
    install.install(root)
    assert list(root.rglob(f"{GUARD}*")) == []
    assert list(root.rglob(f"{CHECK}*")) == []
    assert (root / "etc/systemd/system/autotune-guard@.service").exists()
    assert set(install.status(root).values()) == {"as shipped"}


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
@pytest.mark.parametrize("named", [True, False])
def test_a_guard_of_an_array_that_does_not_run_now_stays_if_it_is_named(
    root: Path, named: bool
) -> None:
    install.install(root)
    config = root / "etc/autotune/config.toml"
    uuid = find_array("md0", root).uuid
    if named:
        config.write_text(f"[array.\"{uuid}\"]\nguard_p99 = '40ms'\ncheck_every = '30d'\n")
    shutil.rmtree(root / "sys/block/md0")
    install.install(root)
    drop_ins = {path.parent.name for path in root.rglob("array.conf")}
    assert drop_ins == ({f"{GUARD}.d", f"{CHECK}.service.d"} if named else set())


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_a_guard_that_goes_by_a_name_is_replaced(root: Path) -> None:
    """An earlier version's package had it enabled by hand, without a file of the service."""
    folder = root / "etc/systemd/system/dev-md0.device.wants"
    folder.mkdir(parents=True)
    (folder / "autotune-guard@md0.service").symlink_to(
        "/usr/lib/systemd/system/autotune-guard@.service"
    )
    assert install.by_name(root) == ["autotune-guard@md0.service"]
    install.install(root)
    assert install.by_name(root) == []
    (guard,) = root.glob("etc/systemd/system/dev-*.wants/*")
    assert guard.name == GUARD


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
@pytest.mark.parametrize("installed", [True, False])
def test_what_was_enabled_by_hand_goes_with_a_removal(root: Path, installed: bool) -> None:
    """As the package and the unit itself say. Its template goes, so it could not start again."""
    if installed:
        install.install(root)
    other = "11111111:22222222:33333333:44444444"
    folder = root / install.FOLDER
    links = [
        folder / f"dev-disk.device.wants/autotune-guard@{other}.service",
        folder / f"timers.target.wants/autotune-check@{other}.timer",
    ]
    for link in links:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/usr/lib/systemd/system/{link.name.split('@')[0]}@{link.suffix}")
    assert set(links) <= set(install.remove(root))
    assert list(root.rglob("autotune-*@*")) == []
    assert not links[0].parent.exists()


def test_what_cannot_be_written_leaves_what_was_enabled_by_hand(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = root / install.FOLDER / "dev.wants/autotune-guard@0:1:2:3.service"
    link.parent.mkdir(parents=True)
    link.symlink_to("/usr/lib/systemd/system/autotune-guard@.service")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device", "a unit")

    monkeypatch.setattr(durable, "replace", refuse)
    with pytest.raises(AutotuneError, match="was not installed"):
        install.install(root)
    assert link.is_symlink()


def test_a_removal_stops_whatever_guards_and_checks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(install, "runs", lambda _: True)
    monkeypatch.setattr(install, "has_systemctl", lambda: True)
    monkeypatch.setattr(install, "systemctl", lambda _, *words: calls.append(words))
    install.remove(root)
    assert calls == [
        ("stop", "autotune-guard@*.service", "autotune-check@*.timer", "autotune-check@*.service")
    ]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"metadata": "external:imsm"}, "its metadata are external (firmware RAID)"),
        ({"raid_disks": 1}, "it has no redundancy"),
        ({"uuid": ""}, "it has no UUID"),
    ],
)
def test_config_check_promises_no_unit_that_is_not_installed(
    root: Path, changed: dict[str, object], why: str
) -> None:
    care = load_config(root / "etc/autotune/config.toml").defaults.model_dump(mode="json")
    array = find_array("md0", root)
    assert len([text for text in _what_follows(array, care) if "is checked every 30d" in text]) == 1
    texts = list(_what_follows(replace(array, **changed), care))  # type: ignore[arg-type]
    assert texts[1:] == [f"no check and no guard, since {why}."]


def test_what_cannot_be_written_leaves_nothing(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/systemd").write_text("a file")
    with pytest.raises(AutotuneError, match="was not installed"):
        install.install(root)


def test_a_command_that_no_unit_could_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    with pytest.raises(RefusalError, match="install them with that"):
        install.command()


def test_a_command_that_no_unit_would_see_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a /tmp of its own, so no guard and no check would ever start."""
    (tmp_path / "autotune").write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "autotune")])
    monkeypatch.setattr(install, "PRIVATE", (str(tmp_path),))
    with pytest.raises(RefusalError, match="would not see"):
        install.command()
    for name in ("check@", "guard@", "retune"):
        assert unit(f"autotune-{name}.service")["Service"]["PrivateTmp"] == "yes"


def test_a_folder_that_would_add_lines_to_a_unit_is_refused() -> None:
    with pytest.raises(RefusalError, match="cannot be printed"):
        install._quoted(Path("/mnt/a\nExecStartPre=/bin/false"))


def test_no_guard_is_installed_for_what_cannot_be_guarded(root: Path) -> None:
    """systemd would start it again every half minute, for ever."""
    assert len(install.guarded(root)) == 1
    assert len(install.checked(root)) == 1
    (root / "sys/block/md0/md/level").write_text("raid0\n")
    assert install.guarded(root) == install.checked(root) == {}


def test_without_systemd_nothing_is_written_and_what_is_there_can_be_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = install.files(AUTOTUNE, root)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(RefusalError, match="no systemctl"):
        install.install(root)
    assert not (root / install.FOLDER).exists()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert install.remove(root)
    assert not [path for path in written if path.exists()]
