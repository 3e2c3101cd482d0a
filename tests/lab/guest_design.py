"""`autotune design` on five blank disks: what it refuses to touch, and that nothing of what it made
is left, however it ends; `test_run.py` runs this on design.toml."""

import contextlib
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from guest import (
    AUTOTUNE,
    FAST,
    Follower,
    autotune,
    autotune_json,
    guardians,
    running,
    signal_guardians,
    start,
    wait_until,
)
from stacks import FOLDER, STACKS, link_to, make_ext4, sh, signature_of_ext4, text, undone

from autotune.design import array_head, creation, slices
from autotune.design.blank_disks import Disk, find_disks, look_at_all_again
from autotune.design.commands import MOUNT
from autotune.design.design import Options, design
from autotune.design.shape import Shape
from autotune.design.workspace import OFFSET_BYTES, Workspace, slice_of
from autotune.errors import RefusalError, StoppedError
from autotune.lab.guest.system import load_modules
from autotune.measure.workload import parse_workload
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path, open_journals
from autotune.system.array import find_array, list_arrays
from autotune.system.blockdev import uuid_words
from autotune.system.programs import find

NAMES = ("vda", "vdb", "vdc", "vdd", "vde")
DISKS = tuple(f"/dev/{name}" for name in NAMES)
DEVICE = DISKS[2]
EDGE_BYTES = 16 << 20
Stack = Callable[[str], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def superblock_of_a_stopped_array(device: str) -> Iterator[None]:
    create = ("mdadm", "--create", "/dev/md9", "--run", "--level=1", "--raid-devices=2")
    sh(*create, "--metadata=1.0", device, "missing")
    sh("mdadm", "--stop", "/dev/md9")
    yield


@contextlib.contextmanager
def read_only(device: str) -> Iterator[None]:
    sh("blockdev", "--setro", device)
    with undone("blockdev", "--setrw", device):
        yield


@contextlib.contextmanager
def signature_of_btrfs_on_several(device: str) -> Iterator[None]:
    load_modules(("btrfs",))
    sh("mkfs.btrfs", "-q", "-f", device, DISKS[4])
    sh("mount", DISKS[4], FOLDER)
    with undone("umount", FOLDER):
        yield


OTHERS: dict[Stack, str] = {
    superblock_of_a_stopped_array: "it has a signature of linux_raid_member",
    read_only: "is not written to: it is read-only",
    signature_of_btrfs_on_several: f"{DEVICE} is not written to: ",
}


SAMPLE = (signature_of_ext4,)
"""For every change; each takes long."""


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    """Disks with nothing on them."""
    FOLDER.mkdir(exist_ok=True)
    yield
    for disk in DISKS:
        sh("wipefs", "-q", "-a", "-f", disk)


def digests() -> list[str]:
    """Of each disk, all of the one that has something on it, else the edges."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    found = []
    for disk in DISKS:
        with Path(disk).open("rb") as file:
            if disk == DEVICE:
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
                continue
            first = file.read(EDGE_BYTES)
            file.seek(-EDGE_BYTES, os.SEEK_END)
            found.append(hashlib.sha256(first + file.read()).hexdigest())
    return found


def words(*more: object, disks: tuple[str, ...] = DISKS) -> list[object]:
    return ["design", *disks, "--destructive", ",".join(disks), *more]


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    """A workload that takes seconds."""
    path = tmp_path / "fast.toml"
    path.write_text(FAST)
    return path


def assert_clean(state: Path) -> None:
    """Nothing is left of a design: no array, no superblock, no journal, and the gate is open."""
    assert [array.device for array in list_arrays()] == []
    for disk in DISKS:
        examined = subprocess.run(("mdadm", "--examine", disk), capture_output=True, check=False)
        assert examined.returncode != 0, examined.stdout.decode()
    assert not open_journals(state)
    for disk in find_disks(DISKS, DISKS):
        disk.look_again()


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(stack, marks=pytest.mark.sample if stack in SAMPLE else ())
        for stack in (*STACKS, *OTHERS)
    ],
    ids=lambda stack: stack.__name__,
)
def test_a_disk_with_anything_on_it_is_refused_by_name_and_none_is_touched(
    stack: Stack, tmp_path: Path
) -> None:
    named = tuple(str(link_to(disk)) if disk == DEVICE else disk for disk in DISKS)
    with stack(DEVICE):
        before = digests()
        done = autotune(*words(disks=named), state=tmp_path)
        assert done.returncode == 1, done.stdout
        assert (OTHERS[stack] if stack in OTHERS else text(stack, DEVICE)) in done.stderr
        assert not open_journals(tmp_path)
        # Named once, it is not even looked at.
        once = autotune("design", *DISKS, "--destructive", DISKS[0], state=tmp_path)
        assert once.returncode == 2, once.stdout
        assert digests() == before


def test_what_is_no_whole_disk_is_refused(tmp_path: Path) -> None:
    sh("sfdisk", "-q", DEVICE, data=b"label: dos\n, 16M\n")
    wait_until(lambda: Path(f"{DEVICE}1").exists(), 10, "the partition")
    before = digests()
    done = autotune(*words(disks=(DISKS[0], f"{DEVICE}1")), state=tmp_path)
    assert done.returncode == 2
    assert f"{DEVICE}1 is no whole disk but a partition of {DEVICE}" in done.stderr
    assert digests() == before
    sh("sfdisk", "-q", "--delete", DEVICE)


def test_a_design_ends_with_a_winner_and_clean_disks(fast: Path, tmp_path: Path) -> None:
    options = ("--level", "raid5", "--workload", fast, "--time", "8min")
    found = autotune_json(*words(*options), state=tmp_path)
    assert_clean(tmp_path)
    default = {
        "level": "raid5",
        "layout": "left-symmetric",
        "chunk_kib": 512,
        "consistency": "bitmap",
    }
    assert found["default"] == default
    assert found["finalists"][0]["setting"] == default
    assert found["winner"] in [each["setting"] for each in found["finalists"]]
    assert {trial["role"] for trial in found["trials"]} == {"baseline", "search", "proof"}
    assert found["rounds"] >= 2
    # The last ones of a search may be of what it has tried already.
    tried = {tuple(t["setting"].values()) for t in found["trials"] if t["role"] == "search"}
    assert len(tried) > 1
    broken = [trial for trial in found["trials"] if trial["status"] == "infeasible"]
    assert not broken, broken


def chunk_of(found: dict[str, Any]) -> int:
    return int(found["winner"]["chunk_kib"])


def test_the_array_is_made_as_printed_and_can_be_tuned(fast: Path, tmp_path: Path) -> None:
    options = ("--level", "raid10", "--workload", fast, "--time", "8min", "--create")
    found = autotune_json(*words(*options), state=tmp_path)
    made, shape = found["made"], Shape.of(found["winner"])
    assert made == "/dev/md0"

    def as_it_is() -> tuple[object, ...]:
        array = find_array(made)
        layout = (array.md / "layout").read_text()
        policy = (array.md / "consistency_policy").read_text()
        return array.level, array.chunk_bytes >> 10, layout, policy, array.size_bytes

    first = as_it_is()
    assert first[:2] == ("raid10", shape.chunk_kib)
    assert first[3] == "bitmap\n"
    # Never measured with, so never consistent by itself: it syncs.
    assert Path("/sys/block/md0/md/sync_action").read_text() in ("resync\n", "idle\n")
    assert found["next"].startswith("autotune run /dev/md0 ")
    sh("mdadm", "--stop", made)
    sh("mdadm", "--zero-superblock", *DISKS)
    sh(*shlex.split(found["commands"]["mdadm"]), data=b"y\n")
    assert as_it_is() == first
    wait_until(is_idle, 120, "the first sync")
    for kind in ("xfs", "ext4"):
        sh("wipefs", "-q", "-a", made)
        sh(*shlex.split(found["commands"][kind]))
        # The mount point is of the machine that runs the tests.
        table = tmp_path / "fstab"
        table.write_text(found["commands"][f"{kind}_fstab"].replace(MOUNT, str(FOLDER)) + "\n")
        sh("mount", "--fstab", table, FOLDER)
        with undone("umount", FOLDER):
            assert stripe_of(kind, made) == (shape.chunk_kib, shape.width(len(DISKS)))
            if kind == "ext4":
                following = shlex.split(found["next"])
                assert following[:3] == ["autotune", "run", made]
                few = ("--strategy", "recipe", "--trials", 3, "--ram-budget", "96MiB")
                done = autotune(*following[1:], *few, state=tmp_path)
                assert done.returncode == 0, done.stderr
    sh("mdadm", "--stop", made)
    sh("mdadm", "--zero-superblock", *DISKS)


def is_idle() -> bool:
    return Path("/sys/block/md0/md/sync_action").read_text() == "idle\n"


def stripe_of(kind: str, device: str) -> tuple[int, int]:
    """The chunk in KiB, and the chunks in a stripe, as the filesystem has them."""
    if kind == "ext4":
        said = subprocess.check_output(
            ("dumpe2fs", "-h", device), text=True, stderr=subprocess.DEVNULL
        )
        values = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        blocks = int(values["Block size"]) // 1024
        stride, width = int(values["RAID stride"]), int(values["RAID stripe width"])
        return stride * blocks, width // stride
    said = subprocess.check_output(("xfs_info", device), text=True)
    unit, width, block = (
        int(match[1])
        for name in ("sunit=", "swidth=", "bsize=")
        if (match := re.search(rf"{name}(\d+)", said[said.index("data ") :]))
    )
    return unit * block // 1024, width // unit


def is_filling() -> bool:
    return any("making" in path.read_text() for path in open_journals(Path("/tmp/killed")))


def is_made() -> bool:
    return bool(list_arrays())


def is_measuring() -> bool:
    return bool(running("fio"))


def is_proving() -> bool:
    return PROVING.exists() and is_measuring()


MOMENTS = (is_filling, is_made, is_measuring, is_proving)
PROVING = Path("/tmp/proving")
SHORT = """
import pathlib
from autotune.cli.main import main
from autotune.design import design, search
from autotune.design.shape import Shape

prove = design.prove

def told(*words):
    pathlib.Path("/tmp/proving").touch()
    return prove(*words)

def once(self, factory):
    self._trials.run("search", Shape("raid10", "f2", 64, "bitmap"))

design.prove, search.Search.run = told, once
main()
"""
"""`autotune` with one trial of the search, which says when the proof begins."""


@pytest.fixture
def begun(fast: Path) -> Iterator[Callable[[Callable[[], bool]], subprocess.Popen[str]]]:
    """Return a function that starts a design and waits for a moment of it."""
    state = Path("/tmp/killed")
    processes = []

    def begin(moment: Callable[[], bool]) -> subprocess.Popen[str]:
        PROVING.unlink(missing_ok=True)
        more = ("--workload", fast, "--time", "20min")
        program = (sys.executable, "-c", SHORT) if moment is is_proving else AUTOTUNE
        process = start(*words(*more), state=state, program=program)
        processes.append(process)
        wait_until(moment, 600, moment.__name__)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def left() -> bool:
    return bool(open_journals(Path("/tmp/killed")) or list_arrays() or running("fio"))


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)
def test_the_guardian_removes_what_a_killed_design_has_made(
    moment: Callable[[], bool],
    begun: Callable[[Callable[[], bool]], subprocess.Popen[str]],
) -> None:
    begun(moment).kill()
    wait_until(lambda: not left(), 120, "the removal")
    assert_clean(Path("/tmp/killed"))


def is_held() -> bool:
    """Whether somebody has the array for himself alone."""
    try:
        os.close(os.open("/dev/md127", os.O_RDONLY | os.O_EXCL))
    except OSError:
        return True
    return False


def test_restore_removes_what_is_left_if_the_guardian_is_killed_too(
    begun: Callable[[Callable[[], bool]], subprocess.Popen[str]],
) -> None:
    process = begun(is_measuring)
    signal_guardians()
    process.kill()
    process.wait()
    time.sleep(2)
    assert left()
    state = Path("/tmp/killed")
    # Until it is removed, nobody else uses the disks.
    again = autotune(*words(), state=state)
    assert again.returncode == 1
    # What somebody takes for theirs is theirs.
    subprocess.run(["mkfs.ext4", "-q", "-F", "/dev/md127"], check=True)
    kept = autotune("restore", state=state)
    assert kept.returncode == 1
    assert "it has a signature of ext4" in kept.stderr
    subprocess.run(["e2fsck", "-fn", "/dev/md127"], check=True)
    (array,) = list_arrays()
    members = [f"/dev/{member.name}" for member in array.members]
    subprocess.run(["mdadm", "--stop", "/dev/md127"], check=True)
    kept = autotune("restore", state=state)
    assert kept.returncode == 1
    assert "it is not active, so what is on it cannot be seen" in kept.stderr
    # As udev leaves it where a disk comes late.
    for member in members[:2]:
        subprocess.run(["mdadm", "--incremental", member], check=False)
    kept = autotune("restore", state=state)
    assert kept.returncode == 1
    assert "it is not active" in kept.stderr
    for array in Path("/sys/block").glob("md*"):
        subprocess.run(["mdadm", "--stop", f"/dev/{array.name}"], check=True)
    subprocess.run(["mdadm", "--assemble", "/dev/md127", *members], check=True)
    subprocess.run(["e2fsck", "-fn", "/dev/md127"], check=True)
    # Nothing else of autotune takes it for its own, either.
    for command in ("run", "check"):
        done = autotune(command, "/dev/md127", state=state)
        assert done.returncode == 1, done.stderr
    assert open_journals(state)
    # Whoever makes a filesystem just now holds it, and then it is theirs.
    subprocess.run(["wipefs", "-q", "--all", "/dev/md127"], check=True)
    making = subprocess.Popen(["mkfs.ext4", "-q", "-F", "-c", "/dev/md127"])
    wait_until(is_held, 20, "mkfs to hold the array")
    kept = autotune("restore", state=state)
    assert (making.wait(), kept.returncode) == (0, 1)
    # On a slow machine it holds it for longer than a restore waits.
    assert any(why in kept.stderr for why in ("it has a signature of ext4", "/dev/md127 is in use"))
    subprocess.run(["e2fsck", "-fn", "/dev/md127"], check=True)
    subprocess.run(["wipefs", "-q", "--all", "/dev/md127"], check=True)
    subprocess.run(["mdadm", "/dev/md127", "--fail", members[0]], check=True)
    kept = autotune("restore", state=state)
    assert kept.returncode == 1
    assert "members of /dev/md127 are there" in kept.stderr
    subprocess.run(["mdadm", "/dev/md127", "--remove", members[0]], check=True)
    subprocess.run(["mdadm", "/dev/md127", "--add", members[0]], check=True)
    wait_until(lambda: list_arrays()[0].now().degraded == 0, 120, "the rebuild")
    done = autotune("restore", state=state)
    assert done.returncode == 0, done.stderr
    assert "removed: /dev/md127" in done.stdout
    assert "removed: the superblock on /dev/vda" in done.stdout
    assert_clean(state)


def test_a_disk_that_failed_and_came_back_is_blank_again_after_a_restore(tmp_path: Path) -> None:
    """It could not be read while the others were cleaned."""
    journal = new_journal(journal_path(tmp_path, "c" * 32), "c" * 32, "/dev/md127", ())
    journal.making({disk.name: disk.hardware for disk in find_disks(DISKS, DISKS)})
    level = ("--level=5", f"--raid-devices={len(DISKS)}", f"--uuid={uuid_words('c' * 32)}")
    sh("mdadm", "--create", "/dev/md127", "--run", "--assume-clean", *level, *DISKS)
    journal.made(whole=True)
    journal.made(whole=False)
    journal.release()
    sh("mdadm", "--stop", "/dev/md127")
    sh("mdadm", "--zero-superblock", *(disk for disk in DISKS if disk != DEVICE))
    # As udev leaves it.
    subprocess.run(["mdadm", "--incremental", DEVICE], check=False)
    done = autotune("restore", state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"removed: the superblock on {DEVICE}" in done.stdout
    assert_clean(tmp_path)


def test_a_disk_that_is_gone_for_a_moment_keeps_the_journal(tmp_path: Path) -> None:
    """Though as many others say the same of themselves: here all do."""
    ours, gone = DISKS[:3], DISKS[2]
    journal = new_journal(journal_path(tmp_path, "c" * 32), "c" * 32, "/dev/md127", ())
    journal.making({disk.name: disk.hardware for disk in find_disks(ours, ours)})
    level = ("--level=5", "--raid-devices=3", f"--uuid={uuid_words('c' * 32)}")
    sh("mdadm", "--create", "/dev/md127", "--run", "--assume-clean", *level, *ours)
    journal.made(whole=True)
    journal.made(whole=False)
    journal.release()
    sh("mdadm", "--stop", "/dev/md127")
    sh("mdadm", "--zero-superblock", *ours[:2])
    number = Path("/sys/block", Path(gone).name, "device").resolve().name
    driver = Path("/sys/bus/virtio/drivers/virtio_blk")
    (driver / "unbind").write_text(number)
    try:
        kept = autotune("restore", state=tmp_path)
    finally:
        (driver / "bind").write_text(number)
    assert kept.returncode == 1
    assert f"whether {gone} has a superblock of ours cannot be seen" in kept.stderr
    wait_until(Path(gone).exists, 20)
    done = autotune("restore", state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert_clean(tmp_path)


def test_ctrl_c_ends_it_with_clean_disks(
    begun: Callable[[Callable[[], bool]], subprocess.Popen[str]],
) -> None:
    process = begun(is_measuring)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Stopped by Ctrl-C; what was made is removed." in errors
    assert_clean(Path("/tmp/killed"))


def test_a_disk_that_somebody_takes_between_two_trials_is_theirs(
    fast: Path, tmp_path: Path
) -> None:
    taken: list[list[str]] = []

    def take() -> None:
        if not taken:
            make_ext4(DEVICE)
            taken.append(digests())

    options = Options(DISKS, DISKS, parse_workload(fast.read_text(), "fast"), ("raid6",))
    said = f"{DEVICE} is not written to: it has a signature.*may be lost"
    with pytest.raises(StoppedError, match=said):
        design(options, tmp_path, Follower(take))
    assert digests() == taken[0]
    assert not open_journals(tmp_path)


@contextlib.contextmanager
def another_array(device: str) -> Iterator[None]:
    store = Path("/tmp/store")
    with store.open("wb") as file:
        file.truncate(16 << 20)
    sh("losetup", "/dev/loop1", store)
    create = ("mdadm", "--create", device, "--run", "--level=1", "--raid-devices=2")
    sh(*create, "--metadata=1.2", "/dev/loop1", "missing")
    with undone("losetup", "-d", "/dev/loop1"), undone("mdadm", "--stop", device):
        yield


@pytest.mark.parametrize("late", [False, True], ids=["before", "meanwhile"])
def test_another_array_that_takes_the_name_costs_no_trial(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = find_disks(DISKS, DISKS)
    workspace = Workspace(disks, "c" * 32, "md127", slice_of(disks))
    if late:
        names = iter(["md127"])
        free = slices.last_free
        monkeypatch.setattr(slices, "last_free", lambda: next(names, None) or free())
    with another_array("/dev/md127"):
        with slices.on_slices(workspace, tmp_path, Follower(lambda: None)) as plots:
            for chunk_kib in (64, 128):
                with plots.made(Shape("raid6", "left-symmetric", chunk_kib, "bitmap")):
                    assert {array.name for array in list_arrays()} == {"md126", "md127"}
        assert [array.name for array in list_arrays()] == ["md127"]
    assert_clean(tmp_path)


def test_what_looks_like_a_partition_table_on_a_new_array_is_none(tmp_path: Path) -> None:
    """As random bytes do by chance."""
    disks = find_disks(DISKS, DISKS)
    workspace = Workspace(disks, "c" * 32, "md127", slice_of(disks))
    shape = Shape("raid6", "left-symmetric", 64, "bitmap")
    table = tmp_path / "table"
    with table.open("wb") as file:
        file.truncate(64 << 20)
    sh("sfdisk", "-q", table, data=b"label: dos\n2048, 16M\n")

    def plant() -> None:
        for disk in DISKS:
            with Path(disk).open("r+b") as file:
                file.seek(OFFSET_BYTES)
                file.write(table.read_bytes()[:512])

    with slices.on_slices(workspace, tmp_path, Follower(lambda: None)) as plots:
        plant()
        with plots.made(shape):
            assert not Path("/sys/block/md127/md127p1").exists()
    assert_clean(tmp_path)
    plant()
    creation.create("/dev/md0", shape, disks, (f"--data-offset={OFFSET_BYTES // 1024}K",))
    # The kernel looks when it is opened first.
    sh("blockdev", "--getsize64", "/dev/md0")
    assert Path("/sys/block/md0/md0p1").exists()
    array_head.clear("/dev/md0", find_array("/dev/md0").uuid)
    assert not Path("/sys/block/md0/md0p1").exists()
    sh("mdadm", "--stop", "/dev/md0")
    sh("mdadm", "--zero-superblock", *DISKS)


def test_a_disk_that_is_taken_after_its_look_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    disks = find_disks(DISKS, DISKS)
    look = Disk.look_again

    def and_take(disk: Disk, inside: bool = True) -> None:
        look(disk, inside)
        if disk.device == DISKS[-1]:
            make_ext4(DEVICE)

    monkeypatch.setattr(Disk, "look_again", and_take)
    with pytest.raises(RefusalError, match=f"{DEVICE} is not written to: it has a signature"):
        look_at_all_again(disks)


def test_a_disk_that_is_held_by_then_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    disks = find_disks(DISKS, DISKS)
    monkeypatch.setattr(Disk, "look_again", lambda _disk, inside: None)
    descriptor = os.open(DEVICE, os.O_RDONLY | os.O_EXCL)
    with pytest.raises(RefusalError, match=f"{DEVICE} is not written to: somebody has just taken"):
        look_at_all_again(disks)
    os.close(descriptor)


MAKE = """
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from autotune.design.design import make
from autotune.design.blank_disks import find_disks
from autotune.design.workspace import Workspace, slice_of
from autotune.design.shape import Shape

disks = find_disks(sys.argv[1:], sys.argv[1:])
winner = SimpleNamespace(shape=Shape("raid6", "left-symmetric", 64, "bitmap"))
workspace = Workspace(disks, "c" * 32, "md127", slice_of(disks))
print("ready", flush=True)
result = SimpleNamespace(workspace=workspace, device="/dev/md0", winner=winner)
make(result, Path(os.environ["AUTOTUNE_STATE_DIR"]))
print("made", flush=True)
"""
"""What `--create` does once all is measured."""


@pytest.mark.parametrize("how", ["kill", "kill all", "ctrl-c"])
@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.3])
def test_the_array_is_made_as_a_whole_or_not_at_all(
    delay_s: float, how: str, tmp_path: Path
) -> None:
    process = start(*DISKS, state=tmp_path, program=(sys.executable, "-c", MAKE))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: bool(running("mdadm")) or process.poll() is not None, 60, "mdadm")
    time.sleep(delay_s)
    if how == "kill all":
        # As a container is killed.
        signal_guardians()
        subprocess.run(("pkill", "-KILL", "mdadm"), check=False)
    process.send_signal(signal.SIGINT if how == "ctrl-c" else signal.SIGKILL)
    said, errors = process.communicate(timeout=120)
    wait_until(lambda: not running("mdadm"), 60, "the end of mdadm")
    assert not list(Path("/run/mdadm").glob("creating-*"))
    if how != "ctrl-c":
        wait_until(lambda: not guardians(), 120, "the end of the guardian")
        if open_journals(tmp_path):
            assert how == "kill all"
            done = autotune("restore", state=tmp_path)
            assert done.returncode == 0, done.stderr
        if not list_arrays():
            assert said == ""
            assert_clean(tmp_path)
            return
    else:
        assert (said, process.returncode) == ("made\n", 0), errors
    assert not open_journals(tmp_path)
    md = Path("/sys/block/md0/md")
    assert [(md / name).read_text().strip() for name in ("level", "raid_disks", "degraded")] == [
        "raid6",
        "5",
        "0",
    ]
    sh("mdadm", "--stop", "/dev/md0")
    sh("mdadm", "--zero-superblock", *DISKS)
    assert_clean(tmp_path)


LATE = """#!/bin/sh
# What comes in the moment before mdadm begins.
case "$*" in *--create*) mkfs.ext4 -q -F {device};; esac
exec {mdadm} "$@"
"""


@pytest.mark.parametrize("all_of_it", [False, True], ids=["slice", "whole"])
def test_a_filesystem_that_comes_when_mdadm_is_called_stays(
    all_of_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mdadm"
    program.write_text(LATE.format(device=DEVICE, mdadm=find("mdadm")))
    program.chmod(0o755)
    monkeypatch.setattr(creation, "find", lambda _name: str(program))
    disks = find_disks(DISKS, DISKS)
    words = () if all_of_it else ("--size=64M", "--assume-clean")
    shape = Shape("raid5", "left-symmetric", 64, "bitmap")
    with pytest.raises(RefusalError, match="appears to contain an ext2fs"):
        creation.create("/dev/md0", shape, disks, words)
    assert [array.device for array in list_arrays()] == []
    sh("e2fsck", "-f", "-n", DEVICE)
