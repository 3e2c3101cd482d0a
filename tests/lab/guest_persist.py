"""What --persist keeps, under a running udevd, on elsewhere.toml; `test_run.py` runs this there."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from guest import autotune, autotune_json, read, wait_until

from autotune.array import find_array
from autotune.journal import Journal
from autotune.journals import journal_path
from autotune.persist import profile_path, rule_path

PROFILE = Path("examples/profile.json")
MEMBERS = ["/dev/vda", "/dev/vdb", "/dev/vdc", "/dev/vdd"]
SOON_S = 2.0
"""Within this a persisted profile is back."""
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


@pytest.fixture(autouse=True)
def fresh(state: Path) -> Iterator[None]:
    """Each test begins and ends with an array as it is when it was just assembled."""
    yield
    autotune("unpersist", UUID, state=state)
    for member in MEMBERS:
        scheduler(member).write_text("mq-deadline")
    again()
    assert values(DEFAULTS) == DEFAULTS


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def stop(name: str = "md0") -> None:
    run("mdadm", "--stop", f"/dev/{name}")


def assemble(name: str = "md0") -> None:
    run("mdadm", "--assemble", f"/dev/{name}", *MEMBERS)


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
    return Path("/sys/class/block", member.removeprefix("/dev/"), "queue/scheduler")


def schedulers() -> list[str]:
    return [read(scheduler(member)).partition("[")[2].partition("]")[0] for member in MEMBERS]


def values(wanted: Mapping[str, str], name: str = "md0") -> dict[str, str]:
    return {file: read(Path("/sys/block", name, file)) for file in wanted}


def soon(name: str = "md0", wanted: Mapping[str, str] = WANTED) -> None:
    """All values are there in time."""
    began = time.monotonic()
    wait_until(lambda: values(wanted, name) == wanted, SOON_S, f"{values(wanted, name)}")
    print(f"back after {time.monotonic() - began:.2f} s")


def persist(state: Path, profile: Path = PROFILE, device: str = "/dev/md0") -> str:
    """Apply to stay; return what was said beside."""
    done = autotune("apply", profile, device, "--persist", state=state)
    assert done.returncode == 0, done.stderr
    return done.stderr


UUID = find_array("md0").uuid


def test_a_persisted_profile_is_back_after_an_assembly_whatever_the_array_is_called(
    state: Path,
) -> None:
    done = autotune_json("apply", PROFILE, "/dev/md0", "--persist", state=state)
    files = [profile_path(UUID), rule_path(UUID)]
    assert done["persisted"] == [str(file) for file in files]
    for file in files:
        status = file.stat()
        assert (status.st_uid, status.st_mode & 0o777) == (0, 0o644)
    assert json.loads(files[0].read_text()) == json.loads(PROFILE.read_text())
    assert schedulers() == ["kyber"] * 4
    stop()
    assemble()
    soon()
    # A disk that was away, as after a restart.
    stop()
    for member in MEMBERS:
        scheduler(member).write_text("mq-deadline")
        run("udevadm", "trigger", "--settle", "--action=remove", scheduler(member).parents[1])
    for member in MEMBERS:
        run("udevadm", "trigger", "--settle", "--action=add", scheduler(member).parents[1])
    if not Path("/sys/block/md0/md/array_state").exists():
        assemble()
    soon()
    assert schedulers() == ["kyber"] * 4
    stop()
    assemble("md7")
    soon("md7")
    stop("md7")
    assemble()


def test_what_a_person_sets_afterwards_stays(state: Path) -> None:
    persist(state)
    cache, first = Path("/sys/block/md0/md/stripe_cache_size"), scheduler(MEMBERS[0])
    cache.write_text("512")
    first.write_text("bfq")
    change("md0", "vda", "vdb")
    assert (read(cache), schedulers()) == ("512", ["bfq", "kyber", "kyber", "kyber"])
    again()
    soon()


def test_nothing_is_rewritten_while_a_journal_is_open(state: Path) -> None:
    persist(state)
    stop()
    journal = journal_path(state, UUID)
    journal.parent.mkdir(exist_ok=True)
    journal.write_text("")
    assemble()
    settle()
    change("md0")
    assert values(DEFAULTS) == DEFAULTS
    journal.unlink()
    change("md0")
    soon()


def test_a_restore_at_boot_lets_udev_set_what_a_journal_kept_it_from(state: Path) -> None:
    persist(state)
    stop()
    journal = Journal.open(journal_path(state, UUID), UUID, "/dev/md0", [])
    journal.release()
    text = journal.path.read_text().replace(journal.record.boot, "another boot")
    journal.path.write_text(text)
    assemble()
    settle()
    assert values(DEFAULTS) == DEFAULTS
    done = autotune("restore", state=state)
    assert (done.returncode, journal.path.exists()) == (0, False), done.stderr
    soon()


@pytest.mark.parametrize("new", ["/dev/vde", "/dev/vdf1"])
def test_a_replaced_member_gets_its_scheduler(state: Path, new: str) -> None:
    """Also if it is a partition, whose queue is the disk's."""
    persist(state)
    disk = new.rstrip("1")
    if new != disk:
        subprocess.run(["sfdisk", "-q", disk], input=",\n", text=True, check=True)
        settle()
    assert "[kyber]" not in read(scheduler(disk))
    run("mdadm", "/dev/md0", "--fail", MEMBERS[3], "--remove", MEMBERS[3])
    began = time.monotonic()
    run("mdadm", "/dev/md0", "--add", new)
    wait_until(lambda: "[kyber]" in read(scheduler(disk)), SOON_S, "the new member's scheduler")
    print(f"after {time.monotonic() - began:.2f} s")
    run("mdadm", "--wait", "/dev/md0")
    # Back to how it was.
    run("mdadm", "/dev/md0", "--fail", new, "--remove", new)
    run("mdadm", "--zero-superblock", new)
    run("mdadm", "--zero-superblock", MEMBERS[3])
    run("mdadm", "/dev/md0", "--add", MEMBERS[3])
    run("mdadm", "--wait", "/dev/md0")
    scheduler(disk).write_text("mq-deadline")


def test_unpersist_leaves_no_trace(state: Path) -> None:
    def traces() -> list[str]:
        found = subprocess.run(["grep", "-rl", UUID, "/etc"], stdout=subprocess.PIPE, check=False)
        database = subprocess.run(
            ["udevadm", "info", "--export-db"], capture_output=True, check=True
        )
        lines = [line for line in database.stdout.decode().splitlines() if "AUTOTUNE" in line]
        return [*found.stdout.decode().splitlines(), *lines]

    before = traces()
    persist(state)
    assert len(traces()) > len(before) + 5
    done = autotune("unpersist", "/dev/md0", state=state)
    assert done.returncode == 0, done.stderr
    assert traces() == before
    assert not Path("/etc/autotune").exists()
    assert values(WANTED) == WANTED
    again()
    assert values(DEFAULTS) == DEFAULTS
    assert autotune("unpersist", UUID, state=state).returncode == 1


def test_what_udev_must_not_set_blindly(state: Path, tmp_path: Path) -> None:
    """Threads only while no sync runs; one speed alone only if it goes with the other."""
    document = json.loads(PROFILE.read_text())
    document["knobs"] = {"group_thread_cnt": 1, "sync_speed_min": 70_000}
    document["before"] = {}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document))
    persist(state, path)
    again()
    soon(wanted={"md/group_thread_cnt": "1", "md/sync_speed_min": "70000 (local)"})
    stop()
    limit = Path("/proc/sys/dev/raid/speed_limit_max")
    limit.write_text("69999")
    run("mdadm", "--assemble", "/dev/md0", "--update=resync", *MEMBERS)
    settle()
    assert read(Path("/sys/block/md0/md/sync_action")) == "resync"
    late = {"md/group_thread_cnt": "0", "md/sync_speed_min": "1000 (system)"}
    assert values(late) == late
    limit.write_text("200000")
    run("mdadm", "--wait", "/dev/md0")
    change("md0")
    soon(wanted={"md/group_thread_cnt": "1"})


def test_a_persist_that_cannot_be_written_leaves_nothing(state: Path) -> None:
    run("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(RULES))
    try:
        (RULES / "full").write_bytes(bytes(4096))
        done = autotune("apply", PROFILE, "/dev/md0", "--persist", state=state)
        assert done.returncode == 1
        assert "nothing was persisted" in done.stderr
        assert [file.name for file in RULES.iterdir()] == ["full"]
        assert not Path("/etc/autotune").exists()
    finally:
        run("umount", str(RULES))


def test_another_rule_for_the_same_knob_is_named_and_what_it_did_too(state: Path) -> None:
    theirs = RULES / "99-zz-openmediavault-md-raid.rules"
    rule = 'SUBSYSTEM=="block", KERNEL=="md*", ATTR{md/stripe_cache_size}="8192"\n'
    theirs.write_text("# stripes\n" + rule)
    try:
        said = persist(state)
    finally:
        theirs.unlink()
    assert f"openmediavault at {theirs}:2" in said
    assert "stripe_cache_size reads 8192 and not 3072" in said
