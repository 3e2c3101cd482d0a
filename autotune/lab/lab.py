"""Boots a scenario and runs a command in it."""

import contextlib
import json
import os
import select
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import autotune
from autotune.durable import LAB_USER
from autotune.errors import AutotuneError
from autotune.lab import disks
from autotune.lab.compiler import compile_library
from autotune.lab.console import Console
from autotune.lab.kernel import find_kernel, modules_of
from autotune.lab.plan import ArrayPlan, GuestPlan
from autotune.lab.processes import (
    PACKAGES,
    SYSTEM_PATH,
    Processes,
    allow_many_files,
    require,
    require_memory,
    require_usable_folder,
)
from autotune.lab.scenario import Scenario
from autotune.lab.wire import Kind, Wire, WireClosedError

_BOOT_S = 120.0
_LOG_LINES = 15
_PASSED_ON = (
    "COLUMNS",
    "HOME",
    "LANG",
    "LC_ALL",
    "LINES",
    "NO_COLOR",
    "PYTHONPATH",
    "TERM",
    "USER",
)


def run(
    scenario: Scenario, command: Sequence[str], out: Path | None = None, kernel: Path | None = None
) -> int:
    """Run a command in the scenario's machine, on this process's standard streams.

    Return its exit status, 128 + N if signal N ended it. What it writes below `out` stays.
    `kernel`: another linux.uml than the installed one, with its modules where a package has them.
    Raise RefusalError if a program or memory is missing, AutotuneError if the machine does not
    come up or dies. Nothing that was started is left, also if this process is killed.
    """
    kernel = find_kernel(kernel)
    require(list(PACKAGES))
    require_memory(scenario.memory_bytes)
    require_usable_folder(Path(tempfile.gettempdir()))
    allow_many_files()
    terminal = os.isatty(1)
    with Processes() as processes:
        shared = processes.folder / "shared"
        shared.mkdir()
        plan = _plan(scenario, modules_of(kernel), command, shared, out, terminal)
        (shared / "plan.json").write_text(json.dumps(plan))
        arguments = disks.start(processes, scenario.each_disk, shared)
        with _boot(processes, kernel, scenario, arguments, shared) as wire:
            try:
                return Console(wire, terminal).attend()
            except WireClosedError as error:
                raise _died(processes, "died while the command ran") from error


def _plan(
    scenario: Scenario,
    modules: Path,
    command: Sequence[str],
    shared: Path,
    out: Path | None,
    terminal: bool,
) -> GuestPlan:
    arrays: list[ArrayPlan] = []
    taken = 0
    for array in scenario.arrays:
        members = list(range(taken, taken + array.members))
        taken += array.members
        arrays.append({**array.model_dump(), "members": members})  # type: ignore[typeddict-item]
    return {
        "shared": str(shared),
        "modules": str(modules),
        "out": str(out.resolve()) if out else None,
        "rotational": [disk.kind == "hdd" for disk in scenario.each_disk],
        "arrays": arrays,
        "filesystem": scenario.filesystem.model_dump() if scenario.filesystem else None,  # type: ignore[typeddict-item]
        "udev": scenario.udev,
        "command": list(command),
        "directory": str(Path.cwd()),
        "environment": _environment(scenario.udev, out),
        "terminal": terminal,
    }


def _environment(udev: bool, out: Path | None) -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("AUTOTUNE_")
    }
    # The command finds this very autotune, and the system's programs wherever they are.
    parts = [str(Path(sys.executable).parent), os.environ.get("PATH", ""), SYSTEM_PATH]
    environment["PATH"] = ":".join(filter(None, parts))
    environment["AUTOTUNE_LAB"] = "1"
    if not udev:
        environment["DM_DISABLE_UDEV"] = "1"  # else LVM waits for udev to make its device nodes
    if out:
        environment["AUTOTUNE_LAB_OUT"] = str(out.resolve())
    return environment


def _kernel(kernel: Path, scenario: Scenario, arguments: Sequence[str], line: int) -> list[str]:
    return [
        *("env", "LD_PRELOAD=./compat.so"),
        *(str(kernel), f"mem={scenario.memory_mib}M", "uml_dir=.", "umid=kernel"),
        *(
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            f"{LAB_USER}{os.geteuid()}",
        ),
        *("con=null", "con0=null,fd:1", "ssl=null", f"ssl0=fd:{line}"),
        *arguments,
    ]


@contextlib.contextmanager
def _boot(
    processes: Processes, kernel: Path, scenario: Scenario, arguments: Sequence[str], shared: Path
) -> Iterator[Wire]:
    """Boot, and yield the wire once the command starts. Raise AutotuneError."""
    init = processes.folder / "init"
    python = f"{shlex.quote(sys.executable)} -m autotune.lab.guest"
    root = shlex.quote(str(Path(autotune.__file__).parent.parent))
    init.write_text(
        f"#!/bin/sh\nexport PATH={SYSTEM_PATH}\n"
        f"cd {root} && exec {python} {shlex.quote(str(shared))}/plan.json\n"
    )
    init.chmod(0o755)
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            booted = _kernel(kernel, scenario, arguments, theirs.fileno())
            _wait_for_disks(processes)
            compat = ("ptrace.c", "timer.c")
            compile_library(processes.folder / "compat.so", "kernel_compat", compat)
            processes.start([*booted, f"init={init}"], "kernel.log", pass_fds=[theirs.fileno()])
        wire = Wire(ours.fileno())
        _wait_for_guest(processes, wire)
        yield wire


def _wait_for_disks(processes: Processes) -> None:
    deadline = time.monotonic() + _BOOT_S
    while not (processes.folder / "daemon.pid").exists():
        if not processes.all_run():
            raise _died(processes, "lost a disk before it booted")
        if time.monotonic() > deadline:
            raise _died(processes, f"did not get its disks within {_BOOT_S:.0f} s")
        time.sleep(0.01)


def _wait_for_guest(processes: Processes, wire: Wire) -> None:
    deadline = time.monotonic() + _BOOT_S
    while select.select([wire], [], [], max(0, deadline - time.monotonic()))[0]:
        try:
            for kind, data in wire.receive():
                if kind is Kind.READY:
                    return
                raise _died(processes, f"could not be set up ({data.decode()})")
        except WireClosedError:
            raise _died(processes, "ended while it booted") from None
    raise _died(processes, f"did not boot within {_BOOT_S:.0f} s")


def _died(processes: Processes, what: str) -> AutotuneError:
    """Say what happened, keeping the log, since the folder will go."""
    logs = b"".join(log.read_bytes() for log in sorted(processes.folder.glob("*.log")))
    with tempfile.NamedTemporaryFile(prefix="autotune-lab-", suffix=".log", delete=False) as kept:
        kept.write(logs)
    tail = "\n".join(logs.decode(errors="replace").splitlines()[-_LOG_LINES:])
    return AutotuneError(f"The lab's machine {what}; see {kept.name}, which ends:\n{tail}")
