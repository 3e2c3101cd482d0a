"""Reads profiles, which may come from a stranger: the one place where their values are checked."""

from pathlib import Path

from pydantic import ValidationError

from autotune.errors import UsageError
from autotune.knobs import ALL
from autotune.problem.profile import SCHEMA, Profile
from autotune.problem.setting import Setting
from autotune.untrusted import first_fault, plain, read_text

MAX_FILE_BYTES = 1 << 20


def parse_profile(text: str, source: str) -> Profile:
    """A profile from JSON. Raise UsageError naming `source` and the first fault."""
    try:
        profile = Profile.model_validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        if fault.startswith("schema_version: "):
            raise UsageError(
                f'The profile "{source}" is of another schema version than {SCHEMA}; '
                "use the autotune that wrote it, or a newer one."
            ) from None
        raise UsageError(f'The profile "{source}" is not valid: {fault}.') from None
    if reason := impossible(profile.knobs):
        raise UsageError(f'The profile "{source}" is not valid: {reason}')
    return profile


def load_profile(path: Path) -> Profile:
    """A profile from a file. Raise UsageError if it cannot be read or is not a valid profile."""
    return parse_profile(read_text(path, MAX_FILE_BYTES, "The profile"), plain(str(path)))


def impossible(setting: Setting) -> str | None:
    """None if there may be an array that takes each of the values, else a sentence. Knobs that are
    not known here are for whoever uses them to refuse."""
    reasons = (knob.impossible(setting[knob.name]) for knob in ALL if knob.name in setting)
    return next(filter(None, reasons), None)
