"""What goes wrong × where a run stands: nothing may be left behind, in the lab `faults.toml`.

`make faults` runs every cell; those marked as a sample are for `test_run.py`.
"""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from guest import autotune, knob_files, read, running, wait_until
from victim import STAGES, Stage, start

MD = Path("/sys/block/md0/md")
MOUNT = Path("/mnt/md0")
SPARE = "vde"
DISKS = {"vda", "vdb", "vdc", "vdd", SPARE}
STEP_S = 86400
TIMEOUT_S = 150
WORKLOAD = """
name = "short"
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, streams = 2, buffered = true, sync_every = 8 }
min_seconds = 4
max_seconds = 4
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 50 }
min_seconds = 4
max_seconds = 4
"""


def mdadm(*words: str) -> None:
    subprocess.run(["mdadm", *words], check=True, capture_output=True)


def members() -> set[str]:
    return {path.name.removeprefix("dev-") for path in MD.glob("dev-*")}


def signal_fio(number: signal.Signals) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if read(folder / "comm") == "fio":
                os.kill(int(folder.name), number)


def kill_the_tuner() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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
    Path(f"/run/lab/disks/{min(members())}/fail").write_text("1\n")


def start_a_recovery() -> None:
    """A member is replaced while the array is whole."""
    present = members()
    (spare,) = DISKS - present
    mdadm("/dev/md0", "--add", f"/dev/{spare}")
    # Beside a check the kernel takes the spare as soon as that has ended.
    mdadm("/dev/md0", "--replace", f"/dev/{min(present)}")


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
    "array stopped": stop_the_array,
    "state disk full": fill_the_state_folder,
    "store refused (EBUSY)": lambda: refuse_a_store(errno.EBUSY),
    "store refused (EINVAL)": lambda: refuse_a_store(errno.EINVAL),
    "fio hanging": hang_fio,
    "clock stepping": step_the_clock,
}
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
    ("recovery starting", "baseline"),
    ("store refused (EBUSY)", "restore"),
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
    if fault == "clock stepping":
        time.clock_settime(time.CLOCK_REALTIME, time.time() + STEP_S)
    if fault == "recovery starting":
        # While it runs the kernel takes no bounds (sync_min), so the journal may be open still.
        wait_until(lambda: read(MD / "sync_action") == "idle", 120, "the recovery")
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


def guardians() -> list[str]:
    name = Path(sys.executable).resolve().name[:15]
    lines = running(name) + running("python") + running("python3")
    return [line for line in lines if "autotune.safety.guardian" in line]


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


def endure(fault: str, stage: str, state: Path, tmp_path: Path, *more: str) -> str:
    """Let it happen to a run. Return what put everything back."""
    workload = tmp_path / "short.toml"
    workload.write_text(WORKLOAD)
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
    assert code in ((-signal.SIGKILL,) if "SIGKILL to the" in fault else (0, 1, -signal.SIGKILL))
    wait_until(lambda: not guardians(), 60, "the guardian")
    mended(fault, state, present)
    word = {0: "done", 1: "said why", -signal.SIGKILL: "guardian"}[code]
    if list((state / "journal").glob("*")):
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
