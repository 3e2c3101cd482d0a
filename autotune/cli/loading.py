"""Ctrl-C while Python loads what a command needs, or pydantic reads a file. Light."""

import os
import signal
from types import FrameType

from autotune.cli.terminal import notice

_IMPORT = "<frozen importlib._bootstrap>"
_PYDANTIC = f"{os.sep}pydantic{os.sep}"


def end_at_once_while_loading() -> None:
    """There, pydantic takes a KeyboardInterrupt for a value that does not match, says that it was
    ignored, and goes on: with a sound profile, say, that it calls damaged. So the process ends
    where it is, for which everything is made, as it is for `kill -9`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(number: int, frame: FrameType | None) -> None:
    at = frame
    while at is not None:
        if at.f_code.co_filename == _IMPORT or _PYDANTIC in at.f_code.co_filename:
            notice("Interrupted.")
            os._exit(1)
        at = at.f_back
    signal.default_int_handler(number, frame)
