"""Disks that go from one array to another, under profiles that udev sets, on the lab `moved.toml`:
in the end each has what it had. `test_run.py` runs this there."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import autotune, autotune_json, read, wait_until

EXAMPLE = json.loads(Path("examples/profile.json").read_text())
MEMBERS = {"md0": ("vda", "vdb"), "md1": ("vdc", "vdd")}
SPARE = "vde"
NOTES = Path("/run/autotune/disks")


def run(*words: str, text: str = "") -> None:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def settle() -> None:
    run("udevadm", "settle")


def queue(disk: str, file: str) -> Path:
    return Path("/sys/block", disk[:3], "queue", file)


def all_disks() -> dict[str, str]:
    """What profiles change, and what a switch of the scheduler resets."""
    names = ("scheduler", "nr_requests", "wbt_lat_usec", "iosched/read_expire")
    disks = (*MEMBERS["md0"], *MEMBERS["md1"], SPARE)
    files = [queue(disk, name) for disk in disks for name in names]
    return {str(file): read(file) for file in files if file.exists()}


@pytest.fixture(autouse=True)
def arrays(tmp_path: Path) -> Iterator[None]:
    """What an administrator has set of the disks is neither the kernel's nor ours."""
    with Path("/etc/mdadm/mdadm.conf").open("a") as config:
        config.write("\nAUTO -all\n")
    for name, disks in MEMBERS.items():
        create = ("mdadm", "--create", f"/dev/{name}", "--run", "--assume-clean", "--bitmap=none")
        run(
            *create,
            "--level=1",
            "--size=16M",
            "--raid-devices=2",
            *(f"/dev/{disk}" for disk in disks),
        )
    for disk in (*MEMBERS["md0"], *MEMBERS["md1"], SPARE):
        queue(disk, "scheduler").write_text("mq-deadline")
        queue(disk, "nr_requests").write_text("40" if disk == SPARE else "30")
        queue(disk, "iosched/read_expire").write_text("250")
    settle()
    yield
    # Of a test that has failed.
    autotune("restore", "--all", state=tmp_path / "state")
    for name in MEMBERS:
        run("mdadm", "--stop", f"/dev/{name}")
    run("wipefs", "-qa", *(f"/dev/{d}" for d in (*MEMBERS["md0"], *MEMBERS["md1"], SPARE)))
    settle()


def gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def apply(state: Path, name: str, *options: str, **knobs: str | int) -> None:
    level = read(Path("/sys/block", name, "md/level"))
    on = {"level": level, "members": 2, "chunk_kib": 0, "media": "ssd", "kernel": "6.1"}
    path = state.with_suffix(".json")
    path.write_text(json.dumps({**EXAMPLE, "proven_on": on, "knobs": knobs, "before": knobs}))
    autotune_json("apply", path, f"/dev/{name}", *options, state=state)


def swap(name: str, out: str, new: str, **wanted: str) -> None:
    """Another member in place of one, until udev has set what is `wanted` of it."""
    md = Path("/sys/block", name, "md")
    run("mdadm", f"/dev/{name}", "--fail", out)
    wait_until(lambda: "in_sync" not in read(md / f"dev-{out.removeprefix('/dev/')}/state"))
    run("mdadm", f"/dev/{name}", "--remove", out)
    run("mdadm", f"/dev/{name}", "--add", new)
    wait_until(lambda: read(md / "degraded") + read(md / "sync_action") == "0idle", 60)
    disk = new.removeprefix("/dev/")
    for file, text in wanted.items():
        wait_until(lambda f=file, t=text: t in read(queue(disk, f)), 20, f"{disk} {file} {text}")
    settle()


def undone(state: Path) -> None:
    done = autotune("restore", "--all", state=state)
    assert done.returncode == 0, done.stderr
    assert "stays" not in done.stdout
    assert not list(NOTES.rglob("nr_requests"))


@pytest.mark.slow
def test_a_member_whose_first_profile_was_undone_while_it_was_in_another_array(
    tmp_path: Path,
) -> None:
    """What it had, only the record of the first array had known."""
    state, before = tmp_path / "state", all_disks()
    apply(state, "md0", nr_requests=24)
    apply(state, "md1", "--persist", nr_requests=48)
    swap("md0", "/dev/vda", "/dev/vde")
    swap("md1", "/dev/vdc", "/dev/vda", nr_requests="48")
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert read(queue("vda", "nr_requests")) == "48"
    undone(state)
    assert all_disks() == before


@pytest.mark.slow
def test_a_disk_that_its_owner_has_set_between_two_arrays(tmp_path: Path) -> None:
    """The switch of the scheduler is undone for one array, the length of the queue for another."""
    state, before = tmp_path / "state", all_disks()
    apply(state, "md0", "--persist", scheduler="kyber")
    apply(state, "md1", "--persist", nr_requests=48)
    swap("md0", "/dev/vda", "/dev/vde", scheduler="[kyber]")
    swap("md0", "/dev/vde", "/dev/vda")
    queue(SPARE, "nr_requests").write_text("20")
    swap("md1", "/dev/vdc", "/dev/vde", nr_requests="48")
    undone(state)
    assert all_disks() == {**before, str(queue(SPARE, "nr_requests")): "20"}


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_a_former_member_that_is_partitioned_anew(tmp_path: Path, whole: bool) -> None:
    """Also where it is another array's next, as a whole disk."""
    state, before = tmp_path / "state", all_disks()
    run("sfdisk", "-q", "/dev/vde", text="size=48M\n")
    settle()
    apply(state, "md0", "--persist", nr_requests=24)
    apply(state, "md1", "--persist", nr_requests=48)
    swap("md0", "/dev/vda", "/dev/vde1", nr_requests="24")
    swap("md0", "/dev/vde1", "/dev/vda")
    run("mdadm", "--zero-superblock", "/dev/vde1")
    if whole:
        run("wipefs", "-qa", "/dev/vde")
        wait_until(lambda: not Path("/sys/class/block/vde1").exists(), 10, "the end of vde1")
        swap("md1", "/dev/vdc", "/dev/vde", nr_requests="48")
    else:
        run("sfdisk", "-q", "/dev/vde", text="size=24M\nsize=24M\n")
    undone(state)
    assert all_disks() == before


@pytest.mark.slow
def test_a_disk_of_which_nothing_can_be_noted_is_not_set(tmp_path: Path) -> None:
    """Neither by a command nor by udev, until it can."""
    state, before = tmp_path / "state", all_disks()
    apply(state, "md0", "--persist", nr_requests=24)
    applied = all_disks()
    run("mount", "-t", "tmpfs", "-o", "ro", "none", str(NOTES))
    try:
        refused = autotune("apply", state.with_suffix(".json"), "/dev/md1", state=state)
        assert refused.returncode == 1
        assert "cannot be noted in /run/autotune/disks (Read-only file system)" in refused.stderr
        swap("md0", "/dev/vda", "/dev/vde")
        # As long as udev looks at it once more.
        time.sleep(3)
        settle()
        assert all_disks() == applied
    finally:
        run("umount", str(NOTES))
    run("udevadm", "trigger", "--settle", "--action=change", "/sys/block/vde")
    assert read(queue(SPARE, "nr_requests")) == "24"
    undone(state)
    assert all_disks() == before


@pytest.mark.parametrize(
    ("ending", "pause_s"),
    [
        pytest.param("restore", 0.0, marks=pytest.mark.slow),
        ("restore", 0.5),
        pytest.param("unpersist", 0.3, marks=pytest.mark.slow),
    ],
)
def test_a_disk_that_joins_just_before_its_profile_is_undone(
    tmp_path: Path, ending: str, pause_s: float
) -> None:
    """udev sets it while the command looks what there is to undo."""
    state, before = tmp_path / "state", all_disks()
    for name, length in (("md0", 24), ("md1", 48)):
        apply(state, name, "--persist", nr_requests=length)
    run("mdadm", "/dev/md0", "--fail", "/dev/vda")
    md = Path("/sys/block/md0/md")
    wait_until(lambda: "in_sync" not in read(md / "dev-vda/state"))
    run("mdadm", "/dev/md0", "--remove", "/dev/vda")
    settle()
    run("mdadm", "/dev/md0", "--add", "/dev/vde")
    time.sleep(pause_s)
    if ending == "unpersist":
        assert autotune("unpersist", "/dev/md0", state=state).returncode == 0
    undone(state)
    settle()
    assert all_disks() == before
    assert "has set" not in autotune("status", state=state).stdout


@pytest.mark.parametrize("ending", ["restore", pytest.param("unpersist", marks=pytest.mark.slow)])
def test_an_array_that_is_assembled_while_its_profile_is_undone(
    tmp_path: Path, ending: str
) -> None:
    """Its own settings, too: what they were before is in the profile alone."""
    state, before = tmp_path / "state", all_disks()
    ahead = Path("/sys/block/md0/queue/read_ahead_kb")
    first = read(ahead)
    apply(state, "md0", "--persist", nr_requests=24, read_ahead_kb=512)
    (uuid,) = (path.stem for path in Path("/etc/autotune/persisted").glob("*.json"))
    run("mdadm", "--stop", "/dev/md0")
    settle()
    disks = [f"/dev/{disk}" for disk in MEMBERS["md0"]]
    start = threading.Timer(0.2, run, ("mdadm", "--assemble", "/dev/md0", *disks))
    start.start()
    if ending == "unpersist":
        assert autotune("unpersist", uuid, state=state).returncode == 0
    else:
        assert autotune("restore", "--all", state=state).returncode == 0
    start.join()
    settle()
    undone(state)
    assert all_disks() == before
    assert read(ahead) == first


@pytest.mark.parametrize("how", ["restore", pytest.param("unpersist", marks=pytest.mark.slow)])
def test_an_array_that_its_owner_has_stopped_stays_so(tmp_path: Path, how: str) -> None:
    """mdadm, as it comes, starts one as soon as udev sees an event of its disks."""
    state, before, config = tmp_path / "state", all_disks(), Path("/etc/mdadm/mdadm.conf")
    apply(state, "md0", "--persist", nr_requests=24)
    (uuid,) = (path.stem for path in Path("/etc/autotune/persisted").glob("*.json"))
    run("mdadm", "--stop", "/dev/md0")
    as_set = config.read_text()
    config.write_text(as_set.replace("AUTO -all", ""))
    try:
        if how == "restore":
            undone(state)
        else:
            assert autotune("unpersist", uuid, state=state).returncode == 0
        settle()
        assert "md0 " not in read(Path("/proc/mdstat"))
        # It would have come back.
        run("udevadm", "trigger", "--action=change", "--settle", "/sys/block/vda", "/sys/block/vdb")
        wait_until(lambda: "active" in read(Path("/proc/mdstat")).partition("md0 ")[2], 20)
    finally:
        config.write_text(as_set)
    undone(state)
    assert all_disks() == before


def test_what_mdadm_has_raised_for_a_reshape_goes_back_after_it(tmp_path: Path) -> None:
    """At its end it puts back what it read at the start, which was a profile's."""
    state, md = tmp_path / "state", Path("/sys/block/md0/md")
    disks = [f"/dev/{disk}" for disk in (*MEMBERS["md0"], SPARE)]
    run("mdadm", "--stop", "/dev/md0")
    run("wipefs", "-qa", *disks)
    create = ("mdadm", "--create", "/dev/md0", "--run", "--assume-clean", "--bitmap=none")
    run(*create, "--level=5", "--chunk=64", "--size=48M", "--raid-devices=3", *disks)
    settle()
    queue(SPARE, "nr_requests").write_text("30")
    least, length = read(md / "sync_speed_min"), read(queue("vda", "nr_requests"))
    apply(state, "md0", nr_requests=24, sync_speed_min=2000)
    grow = subprocess.Popen(
        ["mdadm", "--grow", "/dev/md0", "--chunk=32", f"--backup-file={tmp_path / 'backup'}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: "200000 (local)" in read(md / "sync_speed_min"), 20)
    os.killpg(grow.pid, signal.SIGSTOP)
    try:
        done = autotune("restore", "/dev/md0", state=state)
        assert "sync_speed_min of /dev/md0 goes back by itself once the" in done.stdout
        assert read(queue("vda", "nr_requests")) == length
        assert read(md / "sync_speed_min") == "200000 (local)"
    finally:
        os.killpg(grow.pid, signal.SIGCONT)
    wait_until(lambda: read(md / "reshape_position") == "none", 60, "the reshape is over")
    # It may wait for 10 s more (Grow.c, progress_reshape).
    wait_until(lambda: (grow.poll(), gone(grow.pid))[1], 60, "mdadm has ended")
    wait_until(lambda: read(md / "sync_speed_min") == least, 20, "the minimum is back")


def test_what_a_user_calls_mdadm_keeps_nothing_from_going_back(tmp_path: Path) -> None:
    state, md = tmp_path / "state", Path("/sys/block/md0/md")
    least = read(md / "sync_speed_min")
    apply(state, "md0", sync_speed_min=200_000)
    named = ["mdadm", "-c", "sleep 100; :", "--grow", "/dev/md0"]
    process = subprocess.Popen(named, executable="/bin/sh", user=65534, start_new_session=True)
    try:
        undone(state)
        assert read(md / "sync_speed_min") == least
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_what_is_left_of_a_profile_are_notes_alone(tmp_path: Path) -> None:
    """Rule, profile and record are removed by hand: what the disks had is still known."""
    state, before = tmp_path / "state", all_disks()
    apply(state, "md0", "--persist", nr_requests=24)
    for pattern in ("etc/udev/rules.d/99-autotune-*", "etc/autotune/persisted/*.json"):
        for path in Path("/").glob(pattern):
            path.unlink()
    shutil.rmtree(state)
    told = autotune("status", state=state)
    assert (told.returncode, "has set" in told.stdout) == (1, True), told.stdout
    undone(state)
    assert all_disks() == before
    assert not Path("/etc/autotune/persisted").exists()
