"""The lab itself: it is what it says, it behaves like a local command, it leaves nothing."""

import contextlib
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import OWN, REPOSITORY, Lab

pytestmark = pytest.mark.lab

ONE_DISK = """
summary = "one disk, quickly up"
memory_mib = 256

[[disks]]
kind = "ssd"
count = 1
size_mib = 64
"""


OTHERS = 65534
READS = """
import pathlib, sysconfig
files = pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")
print(len([path.read_bytes() for path, _ in zip(files, range(1500))]))
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(ONE_DISK)
    return str(path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where this test's labs live, so that no other lab is mistaken for them."""
    folder = tmp_path / "labs"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def processes(folder: Path) -> set[str]:
    """Return the commands of all processes that run in a lab's folder below this one."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(f"{folder}/autotune-lab-"):
                found.add((process / "cmdline").read_text())
    return found


@contextlib.contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Fail if lab processes or folders are there 5 s after."""
    yield
    deadline = time.monotonic() + 5
    while (
        processes(folder) or any(path.is_dir() for path in folder.iterdir())
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes(folder)
    assert not any(path.is_dir() for path in folder.iterdir())


def start(scenario: str, *command: str, **options: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "autotune.lab", scenario, "--", *command],
        cwd=REPOSITORY,
        stdin=options.get("stdin", subprocess.DEVNULL),
        stdout=options.get("stdout", subprocess.PIPE),
        stderr=options.get("stderr", subprocess.PIPE),
        start_new_session=True,
    )


def test_the_machine_is_what_the_scenario_says(lab: Lab, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "from-host").write_text("hello")
    command = ["pytest", "-q", OWN, "-p", "no:cacheprovider", "tests/lab/guest_lab.py"]
    with nothing_left(folder):
        result = lab("raid5-hdd", command, out=tmp_path, timeout_s=180)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "from-guest").read_text() == "hello back"
    assert not Path("/etc/autotune-lab-was-here").exists()


@pytest.mark.parametrize(
    ("scenario", "level", "rotational", "mounted"),
    [
        ("raid6-hdd", "raid6", "1", ""),
        ("raid10-ssd", "raid10", "0", "xfs"),
        ("raid1-hdd", "raid1", "1", "ext4"),
        ("raid5-ssd", "raid5", "0", ""),
    ],
)
def test_shipped_scenarios_come_up(
    lab: Lab, scenario: str, level: str, rotational: str, mounted: str
) -> None:
    source = """
from pathlib import Path
print(Path("/sys/block/md0/md/level").read_text().strip())
print(Path("/sys/block/vda/queue/rotational").read_text().strip())
mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
print("".join(kind for device, _, kind, *_ in mounts if device == "/dev/md0"))
"""
    result = lab(scenario, source)
    assert result.stdout.split("\n") == [level, rotational, mounted, ""], result.stderr


def test_streams_and_status_are_the_commands_own(small: str, folder: Path) -> None:
    script = 'cat; [ -t 1 ] && echo a terminal; printf "err\\n" >&2; exit 7'
    data = bytes(range(256)) * 4000
    with nothing_left(folder):
        lab = start(small, "sh", "-c", script, stdin=subprocess.PIPE)
        assert lab.communicate(data, timeout=60) == (data, b"err\n")
    assert lab.returncode == 7


def test_signals_reach_the_command(small: str, folder: Path) -> None:
    # Blocked, a signal waits until it is asked for: there is no wrong moment for it to arrive.
    script = """
import os, signal
wanted = {signal.SIGTERM, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("up", flush=True)
for _ in wanted:
    print("got", signal.Signals(signal.sigwait(wanted)).name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with nothing_left(folder):
        lab = start(small, sys.executable, "-c", script)
        assert lab.stdout is not None
        assert lab.stdout.readline() == b"up\n"
        lab.send_signal(signal.SIGTERM)
        assert lab.stdout.readline() == b"got SIGTERM\n"
        lab.send_signal(signal.SIGINT)
        assert lab.communicate(timeout=60) == (b"got SIGINT\n", b"")
    assert lab.returncode == 128 + signal.SIGKILL


def test_a_command_that_is_deaf_to_ctrl_c_is_killed_at_the_third(small: str, folder: Path) -> None:
    with nothing_left(folder):
        lab = start(small, "bash", "-c", "trap '' INT; echo up; while :; do sleep 0.1; done")
        assert lab.stdout is not None
        lab.stdout.readline()
        for _ in range(2):
            lab.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert lab.poll() is None
        lab.send_signal(signal.SIGINT)
        lab.communicate(timeout=30)
    assert lab.returncode != 0


def test_nothing_outlives_a_killed_lab(small: str, folder: Path) -> None:
    with nothing_left(folder):
        lab = start(small, "bash", "-c", "echo up; sleep 1000 & sleep 1000")
        assert lab.stdout is not None
        lab.stdout.readline()
        assert processes(folder)
        lab.kill()
        lab.wait()


def test_nothing_outlives_a_lab_killed_while_it_boots(small: str, folder: Path) -> None:
    for delay_s in (0.1, 0.5, 1.0):
        with nothing_left(folder):
            lab = start(small, "sleep", "1000")
            deadline = time.monotonic() + 60
            while not processes(folder):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(delay_s)
            lab.kill()
            lab.wait()


def read_until(fd: int, wanted: bytes, timeout_s: float = 60) -> bytes:
    seen = b""
    deadline = time.monotonic() + timeout_s
    while wanted not in seen:
        assert select.select([fd], [], [], max(0, deadline - time.monotonic()))[0], seen
        seen += os.read(fd, 4096)
    return seen


def test_on_a_terminal_the_command_has_one(small: str, folder: Path) -> None:
    master, slave = pty.openpty()
    os.set_blocking(master, True)
    subprocess.run(["stty", "rows", "33", "cols", "77"], stdin=slave, check=True)
    with nothing_left(folder):
        lab = start(small, "bash", "--norc", stdin=slave, stdout=slave, stderr=slave)
        os.write(master, b"tty; stty size\n")
        assert b"33 77" in read_until(master, b"33 77")
        os.write(master, b"sleep 100\n")
        read_until(master, b"sleep 100")
        time.sleep(0.5)
        os.write(master, b"\x03")
        os.write(master, b"echo status $((100 + $?))\n")
        read_until(master, b"status 230")
        os.write(master, b"exit 5\n")
        assert lab.wait(timeout=30) == 5
    assert "-icanon" not in subprocess.check_output(["stty", "-a"], stdin=slave, text=True)


def test_a_machine_that_cannot_be_set_up_says_why(lab: Lab, tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(
        ONE_DISK.replace("count = 1", "count = 2")
        + '[[arrays]]\nname = "md0"\nlevel = "raid1"\nmembers = 2\n'
        + '[filesystem]\narray = "md0"\nkind = "xfs"\nmount = "/mnt/md0"\n'
    )
    with nothing_left(folder):
        result = lab(str(path), ["true"])
    assert result.returncode == 1
    assert "mkfs.xfs failed" in result.stderr
    log = re.search(r"see (\S+\.log)", result.stderr)
    assert log
    assert "Linux version" in Path(log[1]).read_text()


@pytest.mark.parametrize(("command", "status"), [("/no/such", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_start_is_reported_as_by_a_shell(
    lab: Lab, small: str, command: str, status: int
) -> None:
    result = lab(small, [command])
    assert result.returncode == status
    assert result.stderr.startswith(f"{command}: ")


def hides(path: Path) -> Path | None:
    """The folder above that keeps others from a path; None if there is none."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 1), None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.skipif(hides(REPOSITORY) is not None, reason="others cannot read this checkout")
def test_an_ordinary_user_has_a_lab_as_good_as_roots() -> None:
    """What its root keeps is that user's on the host, and most systems allow 1024 open files."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        out = Path(folder)
        out.chmod(0o775)
        os.chown(out, OTHERS, OTHERS)
        result = as_ordinary_user(out)
        assert result.returncode == 0, result.stderr
        assert "put back" in result.stdout
        assert (out / "state").stat().st_uid == OTHERS


def as_ordinary_user(out: Path) -> subprocess.CompletedProcess[str]:
    """Apply a profile in a lab and undo it, the record of it being kept in `out`."""
    commands = [f"{sys.executable} -c {shlex.quote(READS)}", f"cd {out}", "mkdir state"]
    for words in (f"apply {REPOSITORY}/examples/profile.json /dev/md0 --force", "restore --all"):
        commands.append(f"autotune {words} --state-dir state")
    python = Path(sys.base_prefix)
    # Python itself may lie in the home of root.
    seen = (
        f"mkdir {out}/python && mount --bind {python} {out}/python && "
        f"mount -t tmpfs -o mode=755 none {hides(python)} && mkdir -p {python} && "
        f"mount --bind {out}/python {python} && "
    )
    user = f"setpriv --reuid={OTHERS} --regid={OTHERS} --clear-groups prlimit --nofile=1024:8192"
    lab = f"{sys.executable} -m autotune.lab raid6-hdd --out {out} --"
    guest = shlex.quote(" && ".join(commands))
    script = f"{seen if hides(python) else ''}exec {user} {lab} sh -c {guest}"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(out)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
