"""What goes wrong × where a run stands: nothing may be left behind, in the lab `faults.toml`.

`make faults` runs every cell; those marked as a sample are for `test_run.py`.
"""

import errno
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from guest import autotune, guardians, knob_files, read, running, signal_guardians, wait_until
from partitioned import clear, create, mdadm, partition_disks, parts, slow_down, wait_idle
from victim import STAGES, Stage, start

from autotune.safety.paths import is_waiting, open_journals

MD = Path("/sys/block/md0/md")
MOUNT = Path("/mnt/md0")
DISKS = {"vda1", "vdb1", "vdc1", "vdd1", "vde1"}
PART_MIB = 320
NEIGHBOUR_KIB = 4000
"""The speed of the neighbour's recovery, which has to be seen."""
STEP_S = 86400
TIMEOUT_S = 600
"""Only what hangs takes so long. A run above a thin pool takes minutes on a busy machine."""
WORKLOAD = """
name = "short"
long_seconds = 0
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, streams = 2, buffered = true, sync_every = 8 }
min_seconds = 4
max_seconds = LONGEST_S
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 50 }
min_seconds = 4
max_seconds = LONGEST_S
"""


def members() -> set[str]:
    return {path.name.removeprefix("dev-") for path in MD.glob("dev-*")}


def signal_fio(number: signal.Signals) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if read(folder / "comm") == "fio":
                os.kill(int(folder.name), number)


def kill_the_tuner() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_the_guardian() -> None:
    signal_guardians(signal.SIGSTOP)


def kill_fio() -> None:
    signal_fio(signal.SIGKILL)


def hang_fio() -> None:
    signal_fio(signal.SIGSTOP)


def interrupt_twice() -> None:
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)


def run_out_of_memory() -> None:
    Path("/proc/self/oom_score_adj").write_text("1000")
    held = []
    while True:
        held.append(b"x" * (16 << 20))


def fail_a_disk() -> None:
    Path(f"/run/lab/disks/{min(members())[:3]}/fail").write_text("1\n")


def source() -> str:
    """The device of the filesystem: the array, or a volume on it."""
    words = ["findmnt", "--noheadings", "--output", "SOURCE", MOUNT]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def make_the_filesystem_read_only() -> None:
    """As ext4 does it by itself after an error."""
    subprocess.run(["mount", "-o", "remount,errors=remount-ro", MOUNT], check=True)
    name = Path(source()).resolve().name
    Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("wanted by a test")


def start_a_recovery() -> None:
    """A member is replaced while the array is whole."""
    present = members()
    (spare,) = DISKS - present
    slow_down(spare[2], 4)
    mdadm("/dev/md0", "--add", f"/dev/{spare}")
    # Beside a check the kernel takes the spare as soon as that has ended.
    mdadm("/dev/md0", "--replace", f"/dev/{min(present)}")


def start_a_neighbours_recovery() -> None:
    """Of an array that shares a disk with this one."""
    shared, (spare,) = min(members()), DISKS - members()
    create("md1", 1, [f"/dev/{shared[:3]}2", "missing"])
    Path("/sys/block/md1/md/sync_speed_max").write_text(str(NEIGHBOUR_KIB))
    mdadm("/dev/md1", "--add", f"/dev/{spare[:3]}2")


def stop_the_array() -> None:
    """As soon as nothing holds it any more."""
    script = "umount -l /mnt/md0; until mdadm --stop /dev/md0; do sleep 0.2; done"
    subprocess.Popen(["sh", "-c", script], start_new_session=True, stderr=subprocess.DEVNULL)


def fill_the_state_folder() -> None:
    with suppress(OSError), Path(os.environ["AUTOTUNE_STATE_DIR"], "junk").open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()


def refuse_a_store(number: int) -> None:
    """The next store into sysfs fails."""
    write = os.write

    def once(descriptor: int, data: bytes) -> int:
        if str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("/sys/"):
            os.write = write
            raise OSError(number, os.strerror(number))
        return write(descriptor, data)

    os.write = once  # type: ignore[assignment]


def step_the_clock() -> None:
    time.clock_settime(time.CLOCK_REALTIME, time.time() - STEP_S)


FAULTS: dict[str, Callable[[], None]] = {
    "SIGKILL to the tuner": kill_the_tuner,
    "SIGKILL to fio": kill_fio,
    "SIGINT twice": interrupt_twice,
    "out of memory": run_out_of_memory,
    "disk failing": fail_a_disk,
    "recovery starting": start_a_recovery,
    "neighbour recovering": start_a_neighbours_recovery,
    "array stopped": stop_the_array,
    "state disk full": fill_the_state_folder,
    "store refused (EBUSY)": lambda: refuse_a_store(errno.EBUSY),
    "store refused (EINVAL)": lambda: refuse_a_store(errno.EINVAL),
    "fio hanging": hang_fio,
    "clock stepping": step_the_clock,
    "guardian stopped": stop_the_guardian,
    "filesystem read-only": make_the_filesystem_read_only,
}
SYNCS = ("recovery starting", "neighbour recovering")
"""What has to go back does so once they are over, by itself."""
ENDING = (
    *("SIGINT twice", "disk failing", *SYNCS, "array stopped", "state disk full"),
    *("guardian stopped", "filesystem read-only"),
)
"""What ends a run, unless it is over anyway."""
BY_HAND = ("filesystem read-only",)
"""What leaves something that only `restore` puts back: the scratch file, once it can be removed."""
WITHOUT_FIO = ("apply", "restore")
CELLS = [
    (fault, stage)
    for fault in FAULTS
    for stage in STAGES
    if not ("fio" in fault and stage in WITHOUT_FIO)
]
SAMPLE = {
    ("SIGKILL to the tuner", "write"),
    ("disk failing", "resync"),
}


def data() -> dict[str, str]:
    """The checksums of all files on the filesystem, read from the disks."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    sums = {}
    for path in sorted(p for p in MOUNT.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            sums[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


@pytest.fixture(scope="module", autouse=True)
def files() -> None:
    subprocess.run(["umount", MOUNT], check=True)
    clear()
    partition_disks(PART_MIB)
    create("md0", 5, parts(1, "abcd"), "--chunk=64", "--bitmap=internal")
    subprocess.run(["mkfs.ext4", "-q", "/dev/md0"], check=True)
    subprocess.run(["mount", "/dev/md0", MOUNT], check=True)
    (MOUNT / "deep/er").mkdir(parents=True)
    (MOUNT / "deep/er/small").write_text("small")
    (MOUNT / "large").write_bytes(os.urandom(64 << 20))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """On a small disk of its own, which can be filled."""
    folder = tmp_path / "state"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "none", folder], check=True)
    monkeypatch.setenv("AUTOTUNE_STATE_DIR", str(folder))
    yield folder
    whole_again()
    subprocess.run(["umount", folder], check=True)


ended: dict[tuple[str, str], str] = {}


def mended(fault: str, state: Path, present: set[str]) -> None:
    """Do what an administrator would do after the fault."""
    (state / "junk").unlink(missing_ok=True)
    if fault == "filesystem read-only":
        # No guard is kept from the array.
        assert all(is_waiting(path) for path in open_journals(state))
        wait_until(lambda: not running("fio"), 30, "fio to end")
        device = source()
        subprocess.run(["umount", MOUNT], check=True)
        repaired = subprocess.run(["e2fsck", "-fy", device], check=False, capture_output=True)
        assert repaired.returncode in (0, 1)
        subprocess.run(["mount", device, MOUNT], check=True)
    if fault == "clock stepping":
        time.clock_settime(time.CLOCK_REALTIME, time.time() + STEP_S)
    if fault == "recovery starting":
        for disk in DISKS:
            slow_down(disk[2], 1)
        wait_idle("md0")
    if fault == "neighbour recovering":
        wait_idle("md1")
        assert read(Path("/sys/block/md1/md/degraded")) == "0"
        mdadm("--stop", "/dev/md1")
        for disk in DISKS:
            words = ["mdadm", "--zero-superblock", f"/dev/{disk[:3]}2"]
            subprocess.run(words, check=False, capture_output=True)
    if fault == "array stopped":
        wait_until(lambda: not MD.exists(), what="the array to stop")
        wait_until(lambda: not running("mdadm"), what="mdadm to end")
        mdadm("--assemble", "/dev/md0", *(f"/dev/{disk}" for disk in sorted(present)))
        subprocess.run(["mount", "/dev/md0", MOUNT], check=True)
    for switch in Path("/run/lab/disks").glob("*/fail"):
        switch.write_text("0\n")


def whole_again() -> None:
    """Four good members, and a disk that belongs to nobody."""
    wait_until(lambda: read(MD / "sync_action") in ("idle", "check"), 120, "the recovery")
    for path in MD.glob("dev-*"):
        disk = path.name.removeprefix("dev-")
        flags = read(path / "state")
        if "faulty" in flags or "spare" in flags:
            wait_until(lambda d=disk: removed(d), what=f"{disk} to be removed")  # type: ignore[misc]
            mdadm("--zero-superblock", f"/dev/{disk}")
    if len(members()) < 4:
        mdadm("/dev/md0", "--add", f"/dev/{min(DISKS - members())}")
        wait_until(lambda: read(MD / "degraded") == "0", 120, "the rebuild")
    wait_until(lambda: read(MD / "sync_action") == "idle", 120, "the array")


def removed(disk: str) -> bool:
    return not subprocess.run(
        ["mdadm", "/dev/md0", "--remove", f"/dev/{disk}"], check=False, capture_output=True
    ).returncode


@pytest.mark.parametrize(
    ("fault", "stage"),
    [pytest.param(*c, marks=pytest.mark.sample if c in SAMPLE else ()) for c in CELLS],
)
def test_nothing_is_left_behind(fault: str, stage: str, state: Path, tmp_path: Path) -> None:
    ended[fault, stage] = endure(fault, stage, state, tmp_path, "--scratch", str(MOUNT))


def endure(
    fault: str, stage: str, state: Path, tmp_path: Path, *more: str, longest_s: int = 4
) -> str:
    """Let it happen to a run. Return what put everything back."""
    workload = tmp_path / "short.toml"
    workload.write_text(WORKLOAD.replace("LONGEST_S", str(longest_s)))
    before, sums, present = knob_files(), data(), members()
    reached, output = tmp_path / "reached", tmp_path / "output"
    words = ["run", "/dev/md0", "--workload", str(workload), *more]
    child = start(words, Stage(stage, FAULTS[fault], reached), output)
    deadline = time.monotonic() + TIMEOUT_S
    while not (end := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGUSR1)
            time.sleep(5)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail(output.read_text())
        time.sleep(0.1)
    code, said = os.waitstatus_to_exitcode(end[1]), output.read_text()
    assert reached.exists(), said
    print(said)
    assert "Traceback" not in said
    if "SIGKILL to the" in fault:
        assert code == -signal.SIGKILL
    elif fault in ENDING and stage != "restore":
        assert code == 1, said
    else:
        assert code in (0, 1, -signal.SIGKILL)
    if fault in SYNCS:
        mended(fault, state, present)
        wait_until(
            lambda: not list((state / "journal").glob("*")), 60, f"the journal to go: {said}"
        )
    wait_until(lambda: not guardians(), 60, "the guardian")
    if fault not in SYNCS:
        mended(fault, state, present)
    if fault == "neighbour recovering" and stage != "restore":
        assert "/dev/md1 shares disks" in said
    word = {0: "done", 1: "said why", -signal.SIGKILL: "guardian"}[code]
    if list((state / "journal").glob("*")):
        # The guardian sees to everything else.
        assert fault in BY_HAND, said
        word = "restore"
        restored = autotune("restore", state=state)
        assert restored.returncode == 0, said + restored.stdout + restored.stderr
    after = knob_files()
    moved = {
        name: (text, after[name])
        for name, text in before.items()
        if after.get(name, text) != text and not name.endswith("sync_action")
    }
    assert not moved, said
    wait_until(lambda: not running("fio"), 20, "fio to end")
    assert read(MD / "sync_action") != "check"
    assert not list(MOUNT.glob(".autotune*"))
    assert data() == sums
    return word


@pytest.mark.sample
def test_print_the_matrix(capfd: pytest.CaptureFixture[str]) -> None:
    with capfd.disabled():
        print(f"\n{'':24}" + "".join(f"{stage:10}" for stage in STAGES))
        for fault in FAULTS:
            cells = (ended.get((fault, stage), "-") for stage in STAGES)
            print(f"{fault:24}" + "".join(f"{cell:10}" for cell in cells))
