"""What can go wrong, in words for people.

Every error that a user can cause is one of these. The message is one whole sentence: what is
wrong, and what to do about it. `cli/ending.py` is the only place that turns them into exit codes.
"""

from collections.abc import Iterable, Mapping


def closest(name: str, names: Iterable[str]) -> str:
    """` (did you mean "database"?)` if one of the names is much like it, else nothing."""
    import difflib  # noqa: PLC0415  # Only a wrong name needs it.

    found = difflib.get_close_matches(name, list(names), n=1)
    return f' (did you mean "{found[0]}"?)' if found else ""


class AutotuneError(Exception):
    """The work could not be done. Exit code 1. `document`: what was done all the same, which
    `--json` prints in one document with the sentence."""

    exit_code = 1

    def __init__(self, text: str, document: Mapping[str, object] | None = None) -> None:
        super().__init__(text)
        self.document = dict(document or {})


class UsageError(AutotuneError):
    """What was asked for makes no sense, whatever the state of the machine. Exit code 2."""

    exit_code = 2


class RefusalError(AutotuneError):
    """A precondition is not met; nothing was changed. Exit code 1."""


class NotNowError(RefusalError):
    """It was refused for what passes by itself: a service tries again later."""


class MeasurementError(AutotuneError):
    """The measurement broke (not the setting): fio failed or its answer cannot be trusted."""


class InfeasibleError(AutotuneError):
    """The kernel did not take a value, or took another one."""


class RestoreError(AutotuneError):
    """Some originals could not be put back; the journal is kept."""


class StoppedError(AutotuneError):
    """The run was ended from outside: by a signal, or by what the watch saw."""


class SignalledError(StoppedError):
    """The user, or the machine that shuts down, wants an end."""


def is_signalled(error: BaseException | None) -> bool:
    """Whether a signal has ended what raised this, be it that something else failed on the way
    out. Who stops a container kills it ten seconds after the signal: what can wait, waits until
    the settings are back."""
    while error is not None and not isinstance(error, SignalledError):
        error = error.__context__
    return error is not None


class InUseError(StoppedError):
    """Somebody else has come to use the array, who goes first."""


class SyncEndedError(StoppedError):
    """The real sync that was being tuned is over: the run ends with what is known by then."""
