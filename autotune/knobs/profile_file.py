"""Profiles as files. They may come from a stranger: here is the one place where their values are
checked."""

from pathlib import Path

from pydantic import ValidationError

from autotune import durable, named_file
from autotune.errors import AutotuneError, UsageError
from autotune.knobs import ALL
from autotune.problem.profile import SCHEMA, Profile, as_text
from autotune.problem.setting import Setting
from autotune.untrusted import MOST_KEPT_BYTES, first_fault, plain, read_text


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
    return parse_profile(read_text(path, MOST_KEPT_BYTES, "The profile"), plain(str(path)))


def save_profile(profile: Profile, path: Path, named: bool = False) -> None:
    """Write a profile, whole or not at all. `named`: a person named the file, so a link leads to
    it. Raise AutotuneError if the disk does not take it."""
    try:
        if named:
            named_file.save(path, as_text(profile), folder_mode=0o700)
            return
        durable.private_folder(path.parent)
        durable.replace(path, as_text(profile))
    except OSError as error:
        raise AutotuneError(f"The profile {path} cannot be written: {error.strerror}.") from None


def impossible(setting: Setting) -> str | None:
    """None if there may be an array that takes each of the values, else a sentence. Knobs that are
    not known here are for whoever uses them to refuse."""
    reasons = (knob.impossible(setting[knob.name]) for knob in ALL if knob.name in setting)
    return next(filter(None, reasons), None)
