"""Every refusal and warning, on fake trees."""

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.deploy.status import status
from autotune.errors import RefusalError
from autotune.preflight import checks, conflicts, filesystems, syncs
from autotune.preflight.checks import PreflightFinding
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system import sync
from autotune.system.array import find_array
from autotune.system.stack import Mount, mount_number, read_stack

MD = "sys/block/md0/md"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_sysfs.FakeMachine:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    return fake_sysfs.raid6(tmp_path)


def findings(machine: fake_sysfs.FakeMachine) -> list[PreflightFinding]:
    array = find_array("md0", machine.root)
    return checks.check(array, read_stack(array))


def test_a_filesystem_without_room_for_a_scratch_file_is_named(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = find_array("md0", machine.root)
    number = mount_number(machine.root)
    mount = Mount(number, machine.root, "ext4", "md0", read_only=False)
    stack = dataclasses.replace(read_stack(array), mounts=(mount,))
    free = SimpleNamespace(f_bavail=639, f_frsize=1 << 20)
    monkeypatch.setattr("autotune.system.scratch_space.os.statvfs", lambda _folder: free)
    (found,) = checks.check(array, stack)
    assert found.severity == "warn"
    assert "has 639 MiB free, and a scratch file may take a tenth" in found.message
    free.f_bavail = 640
    assert checks.check(array, stack) == []
    free.f_bavail = 0
    read_only = dataclasses.replace(mount, read_only=True)
    assert checks.check(array, dataclasses.replace(stack, mounts=(read_only,))) == []


def test_a_filesystem_that_has_failed_is_named_with_what_to_do(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shut down XFS answers a look at its folder itself, too, with an error."""
    array = find_array("md0", machine.root)
    mount = Mount(mount_number(machine.root), machine.root, "xfs", "md0", read_only=False)
    stack = dataclasses.replace(read_stack(array), mounts=(mount,))

    looked_into = os.scandir

    def shut_down(path: Path) -> object:
        if path == machine.root:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return looked_into(path)

    monkeypatch.setattr(os, "scandir", shut_down)
    monkeypatch.setattr("autotune.system.stack._is_seen", lambda _mount: False)
    said = (
        f"The filesystem on {machine.root} (xfs) has given up after an error, and nothing in it "
        "can be used; look for the cause in the kernel log (`dmesg`), then "
        f"`umount {machine.root}`, repair it, and mount it again."
    )
    assert checks.check(array, stack) == [PreflightFinding("warn", said)]
    with pytest.raises(RefusalError, match="has given up after an error"):
        filesystems.refuse_failed(machine.root / "scratch", stack)
    hidden = dataclasses.replace(stack, mounts=(dataclasses.replace(mount, number=0),))
    assert checks.check(array, hidden) == []
    filesystems.refuse_failed(Path("/elsewhere"), stack)


def test_a_healthy_array_has_no_findings(machine: fake_sysfs.FakeMachine) -> None:
    assert findings(machine) == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (f"{MD}/level", "raid0", "no redundancy"),
        (f"{MD}/metadata_version", "external:/md127/0", "IMSM or DDF"),
        (f"{MD}/bitmap/metadata", "clustered", "is shared with other machines"),
        (f"{MD}/uuid", "0", "no UUID"),
        (f"{MD}/array_state", "readonly", "mdadm --readwrite /dev/md0"),
        (f"{MD}/array_state", "suspended", "in the state suspended"),
        (f"{MD}/degraded", "1", "degraded: it lacks a member"),
        (f"{MD}/degraded", "3", "lacks 3 members, more than a raid6 can bear"),
        (f"{MD}/raid_disks", "1", "has one member only"),
        (f"{MD}/consistency_policy", "journal", "write journal of /dev/md0 has failed"),
        (f"{MD}/reshape_position", "4096", "mdadm --grow --continue /dev/md0"),
        (f"{MD}/sync_action", "recover", "recovering onto a new member"),
        (f"{MD}/sync_action", "resync", "is resyncing"),
        (f"{MD}/sync_action", "check", "echo idle"),
        (f"{MD}/sync_action", "frozen", "thaw it"),
        (f"{MD}/sync_speed_min", "300000 (local)", "above its sync_speed_max"),
        ("proc/mdcmd", "", "Unraid"),
    ],
)
def test_what_is_not_safe_is_refused_once(
    machine: fake_sysfs.FakeMachine, file: str, text: str, words: str
) -> None:
    machine.put(file, text)
    found = findings(machine)
    assert [finding.severity for finding in found] == ["refuse"]
    assert words in found[0].message
    assert found[0].message.endswith(".")


def test_a_reshape_that_goes_on_is_told_from_one_that_stands_still(
    machine: fake_sysfs.FakeMachine,
) -> None:
    machine.put(f"{MD}/reshape_position", "4096")
    for action, words in (("reshape", "is being reshaped"), ("frozen", "stands still")):
        machine.put(f"{MD}/sync_action", action)
        (found,) = findings(machine)
        assert words in found.message


def test_a_sync_on_shared_disks_is_refused(machine: fake_sysfs.FakeMachine) -> None:
    for disk in ("sda", "sdb"):
        machine.partition(disk, f"{disk}9")
    machine.array("md1", "raid1", ["sda9", "sdb9"], sync_action="resync")
    assert "/dev/md1 shares disks" in checks.refusals(findings(machine))[0]


@pytest.mark.parametrize(
    ("here", "said"), [("", "apt install fio"), ("fio", "install the package util-linux")]
)
def test_without_fio_or_what_starts_it_the_package_is_named(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, here: str, said: str
) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: name if name == here else None)
    assert said in checks.refusals(findings(machine))[0]


def test_only_root_may_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path)
    array = find_array("md0", tmp_path)
    monkeypatch.setattr(checks.os, "geteuid", lambda: 1000)
    assert checks.not_root(array) is None, "a tree that is not the machine's"
    real = type("Real", (), {"root": Path("/")})()
    assert "sudo" in str(checks.not_root(real))


@pytest.mark.parametrize(
    ("users", "refused"),
    [("0 0 4294967295", False), ("0 1000 1", True), ("0 0 1", True), (None, False)],
)
def test_root_of_a_container_of_its_own_users_is_not_the_machines(
    users: str | None, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks.os, "geteuid", lambda: 0)
    monkeypatch.setattr(checks, "UID_MAP", tmp_path / "uid_map")
    if users is not None:
        checks.UID_MAP.write_text(f"         {users}\n")
    if not refused:
        checks.require_root()
        return
    with pytest.raises(RefusalError, match="root of a user namespace"):
        checks.require_root()


def test_a_write_journal_that_works_is_no_fault(machine: fake_sysfs.FakeMachine) -> None:
    machine.put(f"{MD}/consistency_policy", "journal")
    machine.put(f"{MD}/dev-sde/state", "journal")
    assert findings(machine) == []
    machine.put(f"{MD}/dev-sde/state", "faulty,journal")
    (found,) = findings(machine)
    assert "--add-journal" in found.message


def test_statistics_that_are_off_are_a_warning(machine: fake_sysfs.FakeMachine) -> None:
    machine.put("sys/block/sdb/queue/iostats", "0")
    found = findings(machine)
    assert [finding.severity for finding in found] == ["warn"]
    assert "sdb" in found[0].message


def test_a_volume_counts_though_it_says_that_its_statistics_are_off(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("sda")
    machine.mapped("dm-0", "LVM-abc", "vg-m1", "sda")
    machine.put("sys/block/dm-0/queue/iostats", "0")
    machine.array("md0", "raid1", ["dm-0"])
    array = find_array("md0", tmp_path)
    assert checks.iostats_off(array) is None
    machine.put("sys/block/md0/queue/iostats", "0")
    assert "md0" in str(checks.iostats_off(array))


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("etc/tuned/active_profile", "throughput-performance", "throughput-performance"),
        (
            "etc/udev/rules.d/70-md.rules",
            '# about stripe_cache_size\nATTR{md/stripe_cache_size}="8192"',
            "/etc/udev/rules.d/70-md.rules:2",
        ),
        (
            "usr/lib/udev/rules.d/99-openmediavault-md-raid.rules",
            'ATTR{md/stripe_cache_size}="8192"',
            "openmediavault",
        ),
        (
            "lib/udev/rules.d/60-disks.rules",
            'TEST=="queue/scheduler", RUN+="/sbin/blockdev --setra 64 %N"',
            "/lib/udev/rules.d/60-disks.rules:1 sets read_ahead_kb",
        ),
        ("etc/mdadm/mdadm.conf.d/x.conf", "SYSFS name=md0 x=5", "/etc/mdadm/mdadm.conf.d/x.conf:1"),
        ("etc/sysctl.d/raid.conf", "dev.raid.speed_limit_max=5", "/etc/sysctl.d/raid.conf:1"),
        ("etc/mdadm/mdadm.conf", "SYSFS name=md0 sync_speed_max=5", "/etc/mdadm/mdadm.conf:1"),
        ("etc/cron.d/mdadm", "57 0 * * 0 root checkarray", "/etc/cron.d/mdadm"),
        (
            "etc/systemd/system/mdmonitor.service.wants/mdcheck_start.timer",
            "",
            "mdcheck_start.timer",
        ),
    ],
)
def test_rivals_are_named_with_their_place(
    machine: fake_sysfs.FakeMachine, file: str, text: str, words: str
) -> None:
    machine.put(file, text)
    found = findings(machine)
    assert [finding.severity for finding in found] == ["warn"]
    assert words in found[0].message


def test_a_rule_that_only_asks_for_a_knob_is_not_named(machine: fake_sysfs.FakeMachine) -> None:
    rule = 'ATTR{queue/scheduler}=="none", TEST!="md/rmw_level", ENV{X}="1"'
    machine.put("etc/udev/rules.d/70-md.rules", rule)
    assert conflicts.find(find_array("md0", machine.root)) == []


def test_tuned_is_named_with_the_lines_of_its_profiles(machine: fake_sysfs.FakeMachine) -> None:
    machine.put("etc/tuned/active_profile", "mine")
    machine.put(
        "etc/tuned/mine/tuned.conf", "[main]\ninclude=base, mine\n[sysctl]\nvm.swappiness=1"
    )
    lines = "[disk]\n# readahead=1\nreadahead=>4096\nelevator=none\n"
    machine.put("usr/lib/tuned/base/tuned.conf", lines + "[sysfs]\n/sys/block/md*/md/rmw_level=1")
    array = find_array("md0", machine.root)
    places = [text.split(" at ")[1].split(" (")[0] for text in conflicts.find(array)]
    assert places == [f"/usr/lib/tuned/base/tuned.conf:{line}" for line in (3, 4, 6)]
    (ahead,) = conflicts.setting(array, ["read_ahead_kb", "stripe_cache_size"])
    assert ":3 (readahead=>4096)" in ahead


def test_a_profile_that_tuned_no_longer_reads_is_not_quoted(
    machine: fake_sysfs.FakeMachine,
) -> None:
    machine.put("etc/tuned/active_profile", "mine")
    machine.put("etc/tuned/mine/tuned.conf", "[disk]\nelevator=none\n")
    machine.put("etc/tuned/profiles/mine/tuned.conf", "[disk]\nreadahead=>4096\n")
    (text,) = conflicts.find(find_array("md0", machine.root))
    assert "/etc/tuned/profiles/mine/tuned.conf:2" in text


def test_a_rule_that_etc_overrides_is_not_named(machine: fake_sysfs.FakeMachine) -> None:
    machine.put("usr/lib/udev/rules.d/70-md.rules", 'ATTR{md/stripe_cache_size}="8192"')
    machine.put("etc/udev/rules.d/70-md.rules", "# nothing")
    assert conflicts.find(find_array("md0", machine.root)) == []


CHECKS: list[Callable[..., str | None]] = [syncs.degraded, syncs.syncing]


@pytest.mark.parametrize("each", CHECKS)
def test_a_check_alone_is_silent_on_a_healthy_array(
    machine: fake_sysfs.FakeMachine, each: Callable[..., str | None]
) -> None:
    assert each(find_array("md0", machine.root)) is None


def test_mismatches_that_a_check_has_found_are_told_before_they_are_reset(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    assert checks.mismatched(find_array("md0", tmp_path)) is None
    machine.put("sys/block/md0/md/mismatch_cnt", "64")
    assert "mismatch_cnt 64" in str(checks.mismatched(find_array("md0", tmp_path)))


def test_a_member_with_bad_blocks_is_named(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    assert checks.bad_blocks(find_array("md0", tmp_path)) is None
    machine.put("sys/block/md0/md/dev-sdb/bad_blocks", "40960 512\n45056 1024")
    machine.put("sys/block/md0/md/dev-sdc/bad_blocks", "")
    said = str(checks.bad_blocks(find_array("md0", tmp_path)))
    assert said.startswith("md has noted 768 KiB of sdb in /dev/md0 as bad blocks")


@pytest.mark.parametrize(
    ("action", "words"), [("recover", "let it go on"), ("idle", "a rebuild too, would stand still")]
)
def test_a_bound_that_a_rebuild_would_meet_is_named(
    machine: fake_sysfs.FakeMachine, action: str, words: str
) -> None:
    machine.put("sys/block/md0/md/sync_action", action)
    assert syncs.held(find_array("md0", machine.root)) is None
    machine.put("sys/block/md0/md/sync_max", "8192")
    said = syncs.held(find_array("md0", machine.root))
    assert said is not None
    assert words in said


def test_what_a_guard_that_was_killed_with_its_journal_has_left_is_named(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container that it was in may be gone, and its files with it."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    array = find_array("md0", machine.root)
    for limit in ("200000 (system)", "1001 (system)", "1000 (local)"):
        machine.put("sys/block/md0/md/sync_speed_max", limit)
        assert syncs.slowed(array) is None
    machine.put("sys/block/md0/md/sync_speed_max", f"{sync.SHUT_KIB} (local)")
    assert "would take months" in str(syncs.slowed(array))
    with monkeypatch.context() as patch:
        # Who does not see whether a guard is at work.
        patch.setattr(os, "geteuid", lambda: 1000)
        assert syncs.slowed(array) is None
    seen = status(array, machine.root)
    assert not seen.good
    assert syncs.slowed(array) in seen.faults
    journal = journal_path(machine.root, array.uuid)
    new_journal(journal, array.uuid, array.device, ()).release()
    # A guard is under way, or `restore` is asked for already.
    assert syncs.slowed(array) not in status(array, machine.root).faults


@pytest.mark.parametrize(
    ("text", "command"),
    [("500 (local)", "echo system | "), ("500 (system)", "sysctl dev.raid.speed_limit_max=200000")],
)
def test_a_limit_is_made_the_usual_one_where_it_is_set(
    machine: fake_sysfs.FakeMachine, text: str, command: str
) -> None:
    machine.put(f"{MD}/sync_speed_max", text)
    array = find_array("md0", machine.root)
    assert command in syncs.to_usual(array, "sync_speed_max")
