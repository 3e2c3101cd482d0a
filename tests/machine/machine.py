"""A whole machine under QEMU: Debian with systemd, four throttled disks, and no network.

Commands reach it through QEMU's guest agent. The kernel and the initramfs are read from its disk
before each boot, so that what the machine does to them counts.
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulator

PATIENCE = float(os.environ.get("AUTOTUNE_PATIENCE", "1"))
"""What every time limit is multiplied by: an emulated machine may get little of its processor."""
BOOT_S = 900.0 * PATIENCE
COMMAND_S = 900.0 * PATIENCE
LOOK_S = 0.5
PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Done:
    """How a command in the machine ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def install(image: Path, files: Iterable[Path], command: str) -> None:
    """Run a command in an image with these files in its /root, without a machine: many times as
    fast, where installing is not what is tried."""
    folder = image.with_suffix(".mounted")
    folder.mkdir()
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        given = [Path(shutil.copy(file, folder / "root")) for file in files]
        words = ["chroot", folder, "env", "-i", f"PATH={PATH}", "HOME=/root", "sh", "-c", command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        for file in given:
            file.unlink()
    finally:
        subprocess.run(["umount", folder], check=True)


class Machine:
    """One machine, with a disk of its own that is a copy of the image. A context manager."""

    def __init__(
        self, image: Path, files: Iterable[Path], folder: Path, disks: emulator.Disks
    ) -> None:
        """`files` are in /root of the machine."""
        self._folder = folder
        self._disks = disks
        self.root = "/dev/vda"
        """The root filesystem of the next boot."""
        self._disk = folder / "root.img"
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._replies: Any = None
        subprocess.run(["cp", "--sparse=always", image, self._disk], check=True)
        for file in files:
            self._debugfs(f"write {file} /root/{file.name}", write=True)
        for letter in emulator.DISKS:
            with (folder / f"vd{letter}.img").open("wb") as disk:
                disk.truncate(disks.mib << 20)

    def __enter__(self) -> "Machine":
        try:
            self.boot()
        except BaseException:
            self.cut()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def _debugfs(self, request: str, write: bool = False) -> str:
        words = ["debugfs", *(["-w"] if write else []), "-R", request, str(self._disk)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def _newest(self, name: str) -> Path:
        """The kernel or the initramfs as it is on the machine's disk."""
        listed = self._debugfs("ls -p /boot").splitlines()
        names = sorted(line.split("/")[5] for line in listed if f"/{name}" in line)
        out = self._folder / name
        self._debugfs(f"dump /boot/{names[-1]} {out}")
        return out

    def boot(self) -> None:
        """Start it, and wait until systemd has started all that it starts."""
        agent = self._folder / "agent"
        agent.unlink(missing_ok=True)
        # A disk that a cut left has a journal, which debugfs does not read.
        subprocess.run(["e2fsck", "-p", str(self._disk)], capture_output=True, check=False)
        kernel, initrd = self._newest("vmlinuz"), self._newest("initrd")
        words = emulator.command(
            self._folder, self._disk, self.root, kernel, initrd, agent, self._disks.scsi
        )
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        self._wait(agent.exists, BOOT_S, "QEMU did not start")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(agent))
        self._replies = self._socket.makefile("rb")
        self._wait(self._answers, BOOT_S, "the machine did not start; see the file console")
        self.run("systemctl is-system-running --wait", BOOT_S)

    def _wait(self, what: Callable[[], bool], seconds: float, fault: str) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{fault} ({self._folder})")
            time.sleep(LOOK_S)

    def _answers(self) -> bool:
        assert self._socket is not None
        self._socket.settimeout(5.0)
        with contextlib.suppress(OSError, ValueError):
            self._socket.sendall(b'{"execute": "guest-sync", "arguments": {"id": 1}}\n')
            return json.loads(self._replies.readline()).get("return") == 1
        # A reader that timed out cannot be read again.
        self._replies = self._socket.makefile("rb")
        return False

    def _ask(self, execute: str, **arguments: object) -> Any:
        assert self._socket is not None
        self._socket.settimeout(120.0)
        asked = {"execute": execute, "arguments": arguments}
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        while True:
            reply = json.loads(self._replies.readline())
            if reply.get("return") == 1:
                continue  # of a `guest-sync` that was answered late
            assert "return" in reply, reply
            return reply["return"]

    def run(self, command: str, timeout_s: float = COMMAND_S) -> Done:
        """Run a shell's command in the machine. AssertionError if it does not end."""
        shell = ["-c", f"export PATH={PATH} LC_ALL=C.UTF-8; {command}"]
        how = {"path": "/bin/sh", "arg": shell, "capture-output": True}
        pid, deadline = self._ask("guest-exec", **how)["pid"], time.monotonic() + timeout_s
        while not (status := self._ask("guest-exec-status", pid=pid))["exited"]:
            assert time.monotonic() < deadline, f"`{command}` did not end in {timeout_s:.0f} s"
            time.sleep(LOOK_S)
        out, err = (
            base64.b64decode(status.get(name, "")).decode("utf-8", "replace")
            for name in ("out-data", "err-data")
        )
        return Done(status.get("exitcode", -status.get("signal", 0)), out, err)

    def do(self, command: str, timeout_s: float = COMMAND_S) -> str:
        """Run a command that has to succeed; return what it printed."""
        done = self.run(command, timeout_s)
        assert done.code == 0, f"`{command}`: {done.text}"
        return done.out

    def until(self, command: str, timeout_s: float = COMMAND_S) -> str:
        """Run a command again and again until it succeeds; return what it printed."""
        deadline = time.monotonic() + timeout_s
        while (done := self.run(command)).code:
            assert time.monotonic() < deadline, f"never in {timeout_s:.0f} s: `{command}`"
            time.sleep(LOOK_S)
        return done.out

    def reboot(self) -> None:
        """Shut it down in order, and start it again."""
        self.run("systemd-run --on-active=1 systemctl poweroff")
        assert self._process is not None
        self._process.wait(BOOT_S)
        self._close()
        self.boot()

    def cut(self) -> None:
        """End it as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._replies.close()
            self._socket.close()
        self._process = self._socket = None
