"""Ends a lab's processes and removes its folder, however the lab ends.

Run as a script. Its standard input names the process groups that the lab has started, one a line,
and ends when the lab closes it, and also when the lab is killed.
"""

import contextlib
import os
import shutil
import signal
import sys


def main(folder: str) -> None:
    """Wait for the end of the lab that owns `folder`, then leave nothing of it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for group in [int(line) for line in sys.stdin]:
        # A whole group at once: a kernel's processes must not outlive the one that traces them,
        # or they would make their system calls to the host.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
