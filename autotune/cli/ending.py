"""How a command ends: errors become one sentence and an exit code here and nowhere else. Light."""

import codecs
import errno
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from autotune.cli.output import loss
from autotune.cli.terminal import notice
from autotune.errors import AutotuneError
from autotune.suggested import in_folder


@contextmanager
def ending(as_json: bool) -> Iterator[None]:
    """Around a command: say what ended it, as JSON too if that is wanted, and exit."""
    codecs.register_error("plain", _in_plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    try:
        try:
            yield
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.stdout.flush()
        _end_where_output_was_lost()
    except AutotuneError as error:
        _say(str(error), as_json, error.document)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        # The first one ends a command in order; this is one of those sent while it does.
        notice("Interrupted.")
        sys.exit(1)
    except BrokenPipeError:
        _close_stdout()
        sys.exit(1)
    except OSError as error:
        from autotune.untrusted import plain

        what = plain(str(error.filename)) if error.filename else "A file"
        why = f"{what} cannot be used: {error.strerror or error}"
        hint = "; run autotune as root." if isinstance(error, PermissionError) else "."
        _say(why + hint, as_json)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        # As Python calls it, which has no class of its own for it (Modules/_threadmodule.c).
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        _say(
            "There is too little memory, or too few threads are allowed (ulimit -a); free some, "
            "and run it again.",
            as_json,
        )
        sys.exit(1)


def _end_where_output_was_lost() -> None:
    if lost := loss():
        # A reader that has seen enough, such as `head`, is nothing to speak of.
        if lost.errno != errno.EPIPE:
            notice(f"What this printed could not be written: {lost.strerror}.")
        sys.exit(1)


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    """What a terminal that knows no arrows gets in place of what it cannot show."""
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.end].translate(_PLAIN), error.end


class _Plain(dict[int, str]):
    def __missing__(self, _character: int) -> str:
        return "?"


_PLAIN = _Plain(zip(map(ord, "×→–−·µ▁▂▃▄▅▆▇█"), "x>--.u12345678", strict=True))
_PLAIN |= str.maketrans({"≤": "<=", "≥": ">=", "±": "+-", "…": "...", "°": ""})
"""Bars of a sparkline become digits."""


def _say(text: str, as_json: bool, document: Mapping[str, object] | None = None) -> None:
    try:
        if as_json:
            print(json.dumps({**(document or {}), "error": in_folder(text)}))
        sys.stdout.flush()
    except OSError:
        # The answer goes nowhere, as on a full disk; what was wrong is said all the same.
        _close_stdout()
    notice(text)


def _close_stdout() -> None:
    """Python flushes once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
