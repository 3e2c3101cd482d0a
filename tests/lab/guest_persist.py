"""What --persist keeps, under a running udevd, on elsewhere.toml; `test_run.py` runs this there."""

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import pytest
from guest import autotune, autotune_json, knob_files, read, start, wait_until

from autotune.deploy import persist
from autotune.deploy.persisted import profile_path, rule_path
from autotune.errors import AutotuneError
from autotune.export.udev import NOTING
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.problem.profile import Profile
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system.array import find_array
from autotune.tuning.run import Done
from autotune.tuning.time_spent import Spent
from autotune.tuning.tune import Result

EXAMPLE = Path("examples/profile.json")
MEMBERS = ["/dev/vda", "/dev/vdb", "/dev/vdc", "/dev/vdd"]
DEFAULTS = {
    "md/stripe_cache_size": "256",
    "md/sync_speed_min": "1000 (system)",
    "md/sync_speed_max": "200000 (system)",
}
WANTED = {
    "md/stripe_cache_size": "3072",
    "md/sync_speed_min": "200000 (local)",
    "md/sync_speed_max": "500000 (local)",
    "queue/read_ahead_kb": "128",
}
RULES = Path("/etc/udev/rules.d")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module", autouse=True)
def _only_these_tests_assemble() -> None:
    """Udev would too, at each change of a member: under the old name, if it is sooner."""
    with Path("/etc/mdadm/mdadm.conf").open("a") as config:
        config.write("\nAUTO -all\n")


UUID = find_array("md0").uuid
# Made for this array, or it could not have so much of its memory.
PROFILE = (found := load_profile(EXAMPLE)).model_copy(
    update={"proven_on": found.proven_on.model_copy(update={"uuid": UUID})}
)


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def stop(name: str = "md0") -> None:
    run("mdadm", "--stop", f"/dev/{name}")
    settle()


def assemble(name: str = "md0", *options: str) -> None:
    run("mdadm", "--assemble", f"/dev/{name}", *options, *MEMBERS)


def again() -> None:
    """Stop and assemble, and wait until udev has seen it."""
    stop()
    assemble()
    settle()


def settle() -> None:
    run("udevadm", "settle")


def change(*names: str) -> None:
    """The kernel says of these devices that something about them has changed."""
    run("udevadm", "trigger", "--settle", "--action=change", *(f"/sys/block/{n}" for n in names))


def scheduler(member: str) -> Path:
    device = Path("/sys/class/block", member.removeprefix("/dev/")).resolve()
    return (device.parent if (device / "partition").exists() else device) / "queue/scheduler"


def schedulers() -> list[str]:
    return [read(scheduler(member)).partition("[")[2].partition("]")[0] for member in MEMBERS]


def values(wanted: Mapping[str, str], name: str = "md0") -> dict[str, str]:
    paths = {file: Path("/sys/block", name, file) for file in wanted}
    return {file: read(path) if path.exists() else "" for file, path in paths.items()}


def back(name: str = "md0", wanted: Mapping[str, str] = WANTED) -> None:
    """Wait until all values are there; how soon that is, `benchmarks.persist` measures."""
    mdstat = Path("/proc/mdstat").read_text()
    wait_until(lambda: values(wanted, name) == wanted, 20, f"{values(wanted, name)} {mdstat}")


def keep(state: Path, profile: Profile = PROFILE) -> str:
    """Persist a profile, which under udevd sets its values too; return what was said beside."""
    said: list[str] = []
    persist.persist(profile, find_array("md0"), state, said.append)
    assert "could not be told" not in "".join(said)
    return "\n".join(said)


def test_a_persisted_profile_is_back_after_an_assembly_whatever_the_array_is_called(
    state: Path, tmp_path: Path
) -> None:
    before = knob_files()
    strange = autotune("apply", EXAMPLE, "/dev/md0", "--persist", state=state)
    assert "more than the budget" in strange.stderr
    assert not profile_path(UUID).exists()
    assert knob_files() == before
    save_profile(PROFILE, tmp_path / "own.json")
    done = autotune_json("apply", tmp_path / "own.json", "/dev/md0", "--persist", state=state)
    files = [profile_path(UUID), rule_path(UUID), NOTING]
    assert done["persisted"] == [str(file) for file in files]
    for file in files:
        status = file.stat()
        assert (status.st_uid, status.st_mode & 0o777) == (0, 0o644)
    kept = load_profile(files[0])
    own = {"before": PROFILE.before, "disks": PROFILE.disks, "system": PROFILE.system}
    assert kept.model_copy(update=own) == PROFILE
    # This array's own, not what the profile came with.
    assert kept.before["stripe_cache_size"] == 256
    assert kept.before["read_ahead_kb"] != PROFILE.before["read_ahead_kb"]
    assert schedulers() == ["kyber"] * 4
    for old, name in (("md0", "md0"), ("md0", "md7"), ("md7", "md0")):
        stop(old)
        assemble(name)
        back(name)


def restart() -> None:
    """As a start of the machine looks to udev."""
    devices = [str(scheduler(member).parents[1]) for member in MEMBERS]
    stop()
    run("udevadm", "trigger", "--settle", "--action=remove", *devices)
    for member in MEMBERS:
        scheduler(member).write_text("mq-deadline")
    run("udevadm", "trigger", "--settle", "--action=add", *devices)
    assemble()


def test_after_a_restart_disks_get_their_scheduler_too(state: Path) -> None:
    keep(state)
    restart()
    back()
    assert schedulers() == ["kyber"] * 4


@pytest.mark.slow
def test_after_a_restart_a_scheduler_gets_its_own_settings_too(state: Path) -> None:
    wanted = {"scheduler": "bfq", "low_latency": 0, "safe_mode_delay": 5000}
    keep(state, PROFILE.model_copy(update={"knobs": wanted}))
    restart()
    back(wanted={"md/safe_mode_delay": "5.000"})
    assert schedulers() == ["bfq"] * 4
    own = [scheduler(member).parent / "iosched/low_latency" for member in MEMBERS]
    assert [read(file) for file in own] == ["0"] * 4


def test_what_a_person_sets_afterwards_stays(state: Path) -> None:
    keep(state)
    cache, first = Path("/sys/block/md0/md/stripe_cache_size"), scheduler(MEMBERS[0])
    cache.write_text("512")
    first.write_text("bfq")
    change("md0", "vda", "vdb")
    assert (read(cache), schedulers()) == ("512", ["bfq", "kyber", "kyber", "kyber"])
    again()
    back()
    first.write_text("kyber")


@pytest.mark.slow
def test_an_udevd_that_others_ask_too_is_waited_for(state: Path) -> None:
    cache = Path("/sys/block/md0/md/stripe_cache_size")
    others = [subprocess.Popen(["sh", "-c", "while :; do udevadm settle; done"]) for _ in range(6)]
    try:
        for _ in range(4):
            keep(state)
            cache.write_text("512")
            change("md0")
            assert read(cache) == "512"
    finally:
        for each in others:
            each.kill()
            each.wait()
    again()
    back()


def test_nothing_is_set_while_a_journal_is_open_nor_forgotten_once_a_boot_has_cleared_it(
    state: Path,
) -> None:
    keep(state)
    stop()
    journal = new_journal(journal_path(state, UUID), UUID, "/dev/md0", [])
    journal.release()
    assemble()
    settle()
    change("md0")
    assert values(DEFAULTS) == DEFAULTS
    # As if a power cut had ended that run.
    head = json.loads(journal.path.read_text())
    journal.path.write_text(
        json.dumps({**head, "boot": "another boot", "started_s": 1.0, "kernel": ""}) + "\n"
    )
    done = autotune("restore", state=state)
    assert (done.returncode, journal.path.exists()) == (0, False), done.stderr
    back()


@pytest.mark.slow
def test_a_replaced_member_gets_its_scheduler_also_if_it_is_a_partition(state: Path) -> None:
    """Even if udevd is busy with the disk while mdadm adds it, when it hears of no close."""
    keep(state)
    busy = RULES / "90-busy.rules"
    busy.write_text('ACTION=="change", KERNEL=="vde|vdf1", RUN+="/bin/sleep 1.5"\n')
    run("udevadm", "control", "--reload")
    subprocess.run(["sfdisk", "-q", "/dev/vdf"], input=",\n", text=True, check=True)
    settle()
    own = {"vde": "bfq", "vdf": "mq-deadline"}
    for old, new in ((2, "/dev/vde"), (3, "/dev/vdf1")):
        disk = new.rstrip("1")
        scheduler(disk).write_text(own[Path(disk).name])
        scheduler(disk).with_name("nr_requests").write_text("77")
        settle()
        assert "[kyber]" not in read(scheduler(disk))
        run("mdadm", "/dev/md0", "--fail", MEMBERS[old], "--remove", MEMBERS[old])
        run("mdadm", "--zero-superblock", MEMBERS[old])
        MEMBERS[old] = new
        Path(new).open("r+b").close()
        run("mdadm", "/dev/md0", "--add", new)
        wait_until(lambda disk=disk: "[kyber]" in read(scheduler(disk)), 20, f"scheduler of {new}")
        # It says 1 if it came too late to wait.
        subprocess.run(["mdadm", "--wait", "/dev/md0"], check=False)
    busy.unlink()
    run("udevadm", "control", "--reload")
    # Nobody else knows what these two had.
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    for disk, before in own.items():
        assert f"[{before}]" in read(scheduler(disk))
        assert read(scheduler(disk).with_name("nr_requests")) == "77"


@pytest.mark.slow
def test_a_disk_that_is_added_during_a_check_gets_its_scheduler_after_it(
    state: Path, tmp_path: Path
) -> None:
    """The journal keeps udev from it, as from all, until then."""
    keep(state)
    new = next(disk for disk in (f"/dev/vd{n}" for n in "abcde") if disk not in MEMBERS)
    scheduler(new).write_text("mq-deadline")
    slow = Path("/run/lab/disks", MEMBERS[0].removeprefix("/dev/"), "slowdown")
    # Or it would be over before it is looked at.
    slow.write_text("20\n")
    check = start("check", "/dev/md0", "--policy", "foreground", state=state)
    wait_until(journal_path(state, UUID).exists, 60, "the check")
    run("mdadm", "/dev/md0", "--add", new)
    time.sleep(3)
    settle()
    assert "[kyber]" not in read(scheduler(new))
    assert check.poll() is None
    check.terminate()
    assert check.wait(90) == 0
    slow.write_text("1\n")
    wait_until(lambda: "[kyber]" in read(scheduler(new)), 20, "the scheduler")
    run("mdadm", "/dev/md0", "--remove", new)
    run("mdadm", "--zero-superblock", new)


def test_what_udev_must_not_set_blindly(state: Path) -> None:
    """Threads only while no sync runs; one speed alone only if it goes with the other."""
    knobs = {"group_thread_cnt": 1, "sync_speed_min": 70_000}
    keep(state, PROFILE.model_copy(update={"knobs": knobs}))
    again()
    back(wanted={"md/group_thread_cnt": "1", "md/sync_speed_min": "70000 (local)"})
    stop()
    limit = Path("/proc/sys/dev/raid/speed_limit_max")
    slow = Path("/run/lab/disks", MEMBERS[0].removeprefix("/dev/"), "slowdown")
    limit.write_text("69999")
    # Or it would be over before it is looked at.
    slow.write_text("20\n")
    assemble("md0", "--update=resync")
    settle()
    assert read(Path("/sys/block/md0/md/sync_action")) == "resync"
    late = {"md/group_thread_cnt": "0", "md/sync_speed_min": "1000 (system)"}
    assert values(late) == late
    slow.write_text("1\n")
    limit.write_text("200000")
    subprocess.run(["mdadm", "--wait", "/dev/md0"], check=False)
    change("md0")
    back(wanted={"md/group_thread_cnt": "1"})


@pytest.mark.slow
def test_a_persist_that_cannot_be_written_leaves_all_as_it_was(state: Path) -> None:
    keep(state)
    profile = profile_path(UUID).read_bytes()
    run("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(RULES))
    try:
        (RULES / "full").write_bytes(bytes(4096))
        with pytest.raises(AutotuneError, match="No space left"):
            keep(state, PROFILE.model_copy(update={"name": "other"}))
        assert [file.name for file in RULES.iterdir()] == ["full"]
        assert profile_path(UUID).read_bytes() == profile
    finally:
        run("umount", str(RULES))


@pytest.mark.slow
def test_another_rule_for_the_same_knob_is_named_and_what_it_did_too(state: Path) -> None:
    theirs = RULES / "99-zz-openmediavault-md-raid.rules"
    rule = 'SUBSYSTEM=="block", KERNEL=="md*", ATTR{md/stripe_cache_size}="8192"\n'
    theirs.write_text("# stripes\n" + rule)
    try:
        said = keep(state)
    finally:
        theirs.unlink()
        run("udevadm", "control", "--reload")
    assert f"openmediavault at {theirs}:2" in said
    assert "stripe_cache_size reads 8192 and not 3072" in said


def test_a_run_persists_the_winner_that_it_has_applied_and_nothing_without_one(
    state: Path,
) -> None:
    """The search itself is not what this is about, so its result is given."""
    for found in (None, PROFILE):
        autotune("unpersist", UUID, state=state)
        result = Result(
            *({}, {}, found is not None, "", None, [], {}, {}, 1, 1, 1.0, 0, None, 0.0, [], {}, 0),
            shares=(),
        )
        done = Done(1, result, found, found and EXAMPLE, 0, 0, (), "", None, Spent())
        words = ("run", "/dev/md0", "--persist")
        assert autotune(*words, state=state).returncode == 2
        with mock.patch("autotune.cli.running.tune_array", return_value=done):
            printed = autotune_json(*words, "--apply", state=state)
        assert [Path(file).exists() for file in printed["persisted"]] == (
            [True] * 3 if found else []
        )
    assert rule_path(UUID).exists()


def test_unpersist_leaves_no_trace(state: Path) -> None:
    def traces() -> list[str]:
        files = [str(path) for path in Path("/etc").rglob(f"*{UUID}*")]
        database = subprocess.run(
            ["udevadm", "info", "--export-db"], capture_output=True, text=True, check=True
        )
        return files + [line for line in database.stdout.splitlines() if "AUTOTUNE" in line]

    again()
    back()
    # Of each member that it is set.
    assert sum("AUTOTUNE_MEMBER" in line for line in traces()) == 4
    assert len(traces()) > 2 + 4
    done = autotune("unpersist", "/dev/md0", state=state)
    assert done.returncode == 0, done.stderr
    assert traces() == []
    assert not Path("/etc/autotune").exists()
    assert values(WANTED) == WANTED
    again()
    assert values(DEFAULTS) == DEFAULTS
    assert autotune("unpersist", UUID, state=state).returncode == 1


def test_a_read_ahead_that_was_lowered_stays_so(state: Path) -> None:
    """Linux 6.9 and newer raise it with the size of requests."""
    queues = [Path("/sys/block/md0/queue"), *(scheduler(member).parent for member in MEMBERS)]
    ahead = [queue / "read_ahead_kb" for queue in queues]
    size = [queue / "max_sectors_kb" for queue in queues]
    before = [read(path) for path in (*ahead, *size)]
    for path in ahead:
        path.write_text("16")
    wanted = {"array_max_sectors_kb": 384, "max_sectors_kb": 256}
    found = {"array_max_sectors_kb": int(read(size[0]))}
    keep(state, PROFILE.model_copy(update={"knobs": wanted, "before": found}))
    assert [read(path) for path in size] == ["384", *["256"] * 4]
    assert [read(path) for path in ahead] == ["16"] * 5
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert [read(path) for path in (*ahead, *size)] == ["16"] * 5 + before[5:]
    for path, text in zip(ahead, before, strict=False):
        path.write_text(text)


def set_by_udev(state: Path) -> dict[str, str]:
    """Persist PROFILE and assemble the array anew, so that udev sets it; what was there before."""
    assert autotune("restore", "--all", state=state).returncode == 0
    again()
    # As they were before the first of these tests, which the records of those say.
    for disk in find_array("md0").disks:
        Path("/sys/block", disk, "queue/scheduler").write_text("mq-deadline")
    before = knob_files()
    save_profile(PROFILE, state / "own.json")
    autotune_json("apply", state / "own.json", "/dev/md0", "--persist", state=state)
    again()
    back()
    return before


@pytest.mark.parametrize("how", ["not mounted", "under another mount"])
def test_a_profile_whose_state_folder_cannot_be_reached_is_not_forgotten(
    state: Path, tmp_path: Path, how: str
) -> None:
    """With the array's own settings alone, of which no disk has a note."""
    own = PROFILE.model_copy(update={"knobs": {"stripe_cache_size": 3072}})
    save_profile(own, tmp_path / "own.json")
    before, mounted = knob_files(), tmp_path / "mounted"
    (tmp_path / "stick").mkdir()
    mounted.mkdir()
    run("mount", "--bind", str(tmp_path / "stick"), str(mounted))
    autotune_json("apply", tmp_path / "own.json", "/dev/md0", state=mounted / "at")
    applied = knob_files()
    assert applied != before
    assert autotune("status", state=mounted / "at").returncode == 0
    if how == "not mounted":
        run("umount", str(mounted))
    else:
        run("mount", "-t", "tmpfs", "none", str(mounted))
        (mounted / "at/applied").mkdir(parents=True)
    for words in (["status"], ["restore", "--all"]):
        told = autotune(*words, state=state)
        assert f"restore --all --state-dir {mounted / 'at'}" in told.stdout + told.stderr
    assert autotune("status", state=state).returncode == 1
    refused = autotune("apply", tmp_path / "own.json", "/dev/md0", state=state)
    assert refused.returncode == 1
    assert "is not mounted" in refused.stderr
    assert knob_files() == applied
    # Somewhere else.
    assert autotune("restore", "--all", state=tmp_path / "stick/at").returncode == 0
    assert knob_files() == before
    if how != "not mounted":
        run("umount", str(mounted))
        run("umount", str(mounted))
    assert "is not mounted" not in autotune("status", state=state).stdout


def test_a_profile_whose_record_somebody_has_removed_is_told_until_it_is_forgotten(
    state: Path, tmp_path: Path
) -> None:
    own = PROFILE.model_copy(update={"knobs": {"stripe_cache_size": 3072}})
    save_profile(own, tmp_path / "own.json")
    before = knob_files()

    def said(*words: object) -> str:
        done = autotune(*words, state=state)
        return done.stdout + done.stderr

    for last in (("restore", "--all"), ("apply", tmp_path / "own.json", "/dev/md0")):
        autotune_json("apply", tmp_path / "own.json", "/dev/md0", state=tmp_path / "gone")
        shutil.rmtree(tmp_path / "gone")
        for words in (("status",), last):
            assert "which somebody has removed" in said(*words)
        assert "which somebody has removed" not in said("status")
        assert read(Path("/sys/block/md0/md/stripe_cache_size")) == "3072"
        assert autotune("restore", "--all", state=state).returncode == 0
        again()
        assert knob_files() == before


@pytest.mark.slow
def test_restore_all_puts_back_what_udev_has_set_at_an_assembly(state: Path) -> None:
    """The record of what was applied is of the assembly before. One value is a person's."""
    before = set_by_udev(state)
    wanted = Path("/sys/block/md0/queue/read_ahead_kb")
    wanted.write_text("1024")
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert not list(Path("/etc").rglob(f"*{UUID}*"))
    assert {**before, str(wanted): "1024"} == knob_files()
    assert values(DEFAULTS) == DEFAULTS
    assert not list(state.glob("journal/*.jsonl"))
    again()


@pytest.mark.slow
def test_what_was_before_a_persisted_profile_is_known_whatever_came_over_it(state: Path) -> None:
    """A disk that somebody has set, another profile, and what a killed run has left."""
    before = set_by_udev(state)
    other = PROFILE.model_copy(update={"knobs": {"scheduler": "bfq", "stripe_cache_size": 512}})
    save_profile(other, state / "other.json")
    autotune_json("apply", state / "other.json", "/dev/md0", state=state)
    array = find_array("md0")
    journal = new_journal(
        journal_path(state, array.uuid), array.uuid, array.device, map(Path, before)
    )
    tried = array.md / "stripe_cache_size"
    journal.writing(tried, "300")
    journal.store(tried, "300")
    journal.release()
    refused = autotune("unpersist", "/dev/md0", state=state)
    assert refused.returncode == 1
    assert f"autotune restore --state-dir {state}" in refused.stderr
    theirs = Path("/sys/block", array.disks[0], "queue/scheduler")
    theirs.write_text("none")
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert f"{theirs} reads none, which was set after that" in done.stdout
    theirs.write_text("mq-deadline")
    assert knob_files() == before
    assert not list(Path("/etc").rglob(f"*{UUID}*"))
    again()


@pytest.mark.slow
@pytest.mark.parametrize("third", [False, True])
def test_what_udev_sets_again_on_a_member_that_is_added_anew_is_ours(
    state: Path, third: bool
) -> None:
    """Over the values of a second profile, and perhaps before a third one."""
    assert autotune("restore", "--all", state=state).returncode == 0
    before, md, member = knob_files(), Path("/sys/block/md0/md"), MEMBERS[0]

    def apply(scheduler: str, *how: str) -> None:
        profile = PROFILE.model_copy(update={"knobs": {"scheduler": scheduler}})
        save_profile(profile, state / "each.json")
        autotune_json("apply", state / "each.json", "/dev/md0", *how, state=state)

    apply("kyber", "--persist")
    apply("bfq")
    run("mdadm", "/dev/md0", "--fail", member, "--remove", member)
    run("mdadm", "--zero-superblock", member)
    run("mdadm", "/dev/md0", "--add", member)
    wait_until(lambda: read(md / "degraded") + read(md / "sync_action") == "0idle", 120)
    settle()
    assert schedulers() == ["kyber", "bfq", "bfq", "bfq"]
    if third:
        apply("none")
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert "which was set after that" not in done.stdout
    assert knob_files() == before
    assert not list(Path("/etc").rglob(f"*{UUID}*"))


def swap(out: str, new: str, wanted: str) -> None:
    """Another member in place of one, until udev has set its scheduler."""
    md = Path("/sys/block/md0/md")
    run("mdadm", "/dev/md0", "--fail", out)
    state = md / f"dev-{out.removeprefix('/dev/')}/state"
    wait_until(lambda: "in_sync" not in read(state))
    run("mdadm", "/dev/md0", "--remove", out)
    run("mdadm", "/dev/md0", "--add", new)
    wait_until(lambda: read(md / "degraded") + read(md / "sync_action") == "0idle", 120)
    wait_until(lambda: f"[{wanted}]" in read(scheduler(new)))
    settle()


@pytest.mark.slow
@pytest.mark.parametrize("second", ["", "bfq"])
def test_a_disk_that_was_out_meanwhile_gets_back_what_it_had(state: Path, second: str) -> None:
    """Under one persisted profile, or under the next, when nothing is recorded of the first."""
    assert autotune("restore", "--all", state=state).returncode == 0
    member = MEMBERS[0]
    spare = next(disk for disk in (f"/dev/vd{n}" for n in "abcde") if disk not in MEMBERS)
    for disk in (*MEMBERS, spare):
        scheduler(disk).write_text("mq-deadline")
        scheduler(disk).with_name("nr_requests").write_text("40" if disk == spare else "64")
    files = [scheduler(disk).with_name(name)
             for disk in (member, spare) for name in ("scheduler", "nr_requests")]  # fmt: skip
    before = [read(file) for file in files]

    def persisted(**knobs: str | int) -> None:
        save_profile(PROFILE.model_copy(update={"knobs": knobs}), state / "each.json")
        autotune_json("apply", state / "each.json", "/dev/md0", "--persist", state=state)

    persisted(scheduler="kyber", nr_requests=24)
    if second:
        autotune_json("restore", "/dev/md0", state=state)
        assert [read(file) for file in files] == before
    swap(member, spare, "kyber")
    if second:
        persisted(scheduler=second)
    swap(spare, member, second or "kyber")
    autotune_json("restore", "--all", state=state)
    assert [read(file) for file in files] == before


@pytest.mark.slow
@pytest.mark.parametrize("own", [{"nr_requests": 24}, {"scheduler": "kyber", "nr_requests": 24}])
def test_what_goes_with_a_length_or_a_scheduler_comes_back_on_a_disk_that_joins(
    state: Path, own: dict[str, str | int]
) -> None:
    """What its owner has set there, though no profile has it, and no `apply` has seen it."""
    assert autotune("restore", "--all", state=state).returncode == 0
    member = MEMBERS[0]
    spare = next(disk for disk in (f"/dev/vd{n}" for n in "abcde") if disk not in MEMBERS)
    for disk in (*MEMBERS, spare):
        scheduler(disk).write_text("mq-deadline")
        scheduler(disk).with_name("nr_requests").write_text("64")
    mine = {"async_depth": "9", "front_merges": "0", "writes_starved": "5", "write_expire": "1500"}
    folder = scheduler(spare).with_name("iosched")
    for name, text in mine.items():
        (folder / name).write_text(text)
    save_profile(PROFILE.model_copy(update={"knobs": own}), state / "each.json")
    autotune_json("apply", state / "each.json", "/dev/md0", "--persist", state=state)
    swap(member, spare, str(own.get("scheduler", "mq-deadline")))
    wait_until(lambda: read(scheduler(spare).with_name("nr_requests")) == "24")
    settle()
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert {name: read(folder / name) for name in mine} == mine
    assert read(scheduler(spare).with_name("nr_requests")) == "64"
    swap(spare, member, "mq-deadline")


@pytest.mark.slow
def test_a_member_that_was_erased_and_came_back_has_had_nothing_of_ours(state: Path) -> None:
    """Not under the next profile either, when what was recorded of the first is undone."""
    assert autotune("restore", "--all", state=state).returncode == 0
    member = MEMBERS[0]
    spare = next(disk for disk in (f"/dev/vd{n}" for n in "abcde") if disk not in MEMBERS)
    lengths = [scheduler(disk).with_name("nr_requests") for disk in (member, spare)]
    for disk in (*MEMBERS, spare):
        scheduler(disk).write_text("mq-deadline")
        scheduler(disk).with_name("nr_requests").write_text("64")

    def persisted(**knobs: str | int) -> None:
        save_profile(PROFILE.model_copy(update={"knobs": knobs}), state / "each.json")
        autotune_json("apply", state / "each.json", "/dev/md0", "--persist", state=state)

    def erase(disk: str) -> None:
        run("mdadm", "--zero-superblock", disk)
        settle()

    persisted(scheduler="kyber", nr_requests=24)
    swap(member, spare, "kyber")
    erase(member)
    swap(spare, member, "kyber")
    swap(member, spare, "kyber")
    autotune_json("restore", "/dev/md0", state=state)
    erase(member)
    persisted(scheduler="kyber", nr_requests=48)
    swap(spare, member, "kyber")
    autotune_json("restore", "--all", state=state)
    assert [read(file) for file in lengths] == ["64", "64"]
    # The spare is in no array, so it has its next event some day.
    assert "AUTOTUNE" not in said_of(member)


def said_of(device: str) -> str:
    return subprocess.run(
        ["udevadm", "info", "--query=property", device], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize("again_applied", [False, True])
def test_what_udev_has_set_goes_back_after_unpersist(state: Path, again_applied: bool) -> None:
    before = set_by_udev(state)
    # A boot takes what the lock remembers.
    for path in Path("/run/autotune").iterdir():
        if path.is_file():
            path.unlink()
    told = autotune("unpersist", "/dev/md0", state=state)
    assert f"`autotune restore /dev/md0 --state-dir {state}` puts them back now" in told.stdout
    elsewhere = autotune("apply", state / "own.json", "/dev/md0", state=state / "elsewhere")
    assert "another state folder is in force" in elsewhere.stderr
    if again_applied:
        other = PROFILE.model_copy(update={"knobs": {"scheduler": "bfq", "stripe_cache_size": 512}})
        save_profile(other, state / "other.json")
        autotune_json("apply", state / "other.json", "/dev/md0", state=state)
    done = autotune("restore", "/dev/md0", state=state)
    assert done.returncode == 0, done.stderr
    assert "somebody else" not in done.stdout
    assert knob_files() == before


@pytest.mark.slow
def test_the_cache_is_set_only_after_a_reshape(state: Path) -> None:
    """One that is too small for it stops it for good."""
    md = Path("/sys/block/md0/md")
    keep(state, PROFILE.model_copy(update={"knobs": {"read_ahead_kb": 256}}))
    (md / "sync_speed_max").write_text("1000")
    spare = min({f"/dev/vd{letter}" for letter in "abcde"} - set(MEMBERS))
    run("mdadm", "/dev/md0", "--add", spare)
    run("mdadm", "--grow", "/dev/md0", "--raid-devices=5", "--backup-file=/run/critical")
    wait_until(lambda: read(md / "sync_action") == "reshape", 20, "the reshape")
    knobs = {"stripe_cache_size": 3072, "preread_bypass_threshold": 300, "read_ahead_kb": 128}
    keep(state, PROFILE.model_copy(update={"knobs": knobs}))
    back(wanted={"queue/read_ahead_kb": "128"})
    change("md0")
    assert read(md / "reshape_position") != "none"
    late = {"md/stripe_cache_size": "256", "md/preread_bypass_threshold": "1"}
    assert values(late) == late
    (md / "sync_speed_max").write_text("system")
    wait_until(lambda: read(md / "reshape_position") == "none", 120, "the end of the reshape")
    change("md0")
    back(wanted={"md/stripe_cache_size": "3072", "md/preread_bypass_threshold": "300"})
