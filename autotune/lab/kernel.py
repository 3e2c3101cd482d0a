"""Which user-mode Linux a lab boots."""

import os
import shutil
from pathlib import Path

from autotune.errors import UsageError
from autotune.lab.processes import SYSTEM_PATH, require

PROGRAM = "linux.uml"


def find_kernel(given: Path | None) -> Path:
    """The kernel's program: the one given, or the one that is installed.

    Raise UsageError if what is given is no such program or lacks its modules, RefusalError if none
    is installed.
    """
    if given is None:
        require([PROGRAM])
        return Path(shutil.which(PROGRAM, path=SYSTEM_PATH) or PROGRAM)
    kernel = given.resolve()
    if not (kernel.is_file() and os.access(kernel, os.X_OK)):
        raise UsageError(f"{given} is no program; give the path of a {PROGRAM} with --kernel.")
    if not modules_of(kernel).is_dir():
        raise UsageError(
            f"The modules of {given} are missing; unpack the whole package user-mode-linux, so "
            f"that they are in {modules_of(kernel)}."
        )
    return kernel


def modules_of(kernel: Path) -> Path:
    """Where its package has the modules: usr/lib/uml/modules beside usr/bin/linux.uml."""
    return kernel.parent.parent / "lib/uml/modules"
