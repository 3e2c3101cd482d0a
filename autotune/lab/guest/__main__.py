"""The first process of the guest: makes it a machine, runs the command, tells the host.

Run by the kernel as `python -m autotune.lab.guest PLAN`. Its standard output is the kernel's log.
"""

import contextlib
import json
import os
import signal
import sys
import tty
from pathlib import Path

from autotune.lab.guest import command, storage, system
from autotune.lab.plan import GuestPlan
from autotune.lab.wire import Kind, Wire, WireClosedError


def _serve(plan: GuestPlan, wire: Wire) -> None:
    try:
        system.populate(plan)
        storage.build(plan)
    except Exception as error:
        said = str(error) if isinstance(error, (RuntimeError, OSError)) else repr(error)
        wire.send(Kind.FAILURE, said.encode())
        return
    wire.send(Kind.READY)
    status = command.run(plan, wire)
    system.flush(plan)
    wire.send(Kind.EXIT, str(status).encode())


def main(plan_file: str) -> None:
    """Do what the plan says. Never returns: the host ends the kernel."""
    plan: GuestPlan = json.loads(Path(plan_file).read_text())
    system.make_writable(Path(plan["modules"]))
    line = os.open("/dev/ttyS0", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    tty.setraw(line)
    with contextlib.suppress(WireClosedError):
        _serve(plan, Wire(line))
    # The first process must not end: the kernel would panic.
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
