"""A profile in the formats of other tools. Pure: a profile in, texts out."""

from collections.abc import Callable, Mapping

from autotune.export import ansible, shell, systemd, tuned, udev
from autotune.export.steps import slug, steps
from autotune.problem.profile import Profile


def _json(profile: Profile, _uuid: str) -> dict[str, str]:
    steps(profile)
    return {f"{slug(profile)}.json": profile.model_dump_json(indent=2) + "\n"}


FORMATS: Mapping[str, Callable[[Profile, str], dict[str, str]]] = {
    "json": _json,
    "udev": udev.render,
    "tuned": tuned.render,
    "ansible": ansible.render,
    "shell": shell.render,
    "systemd": systemd.render,
}
"""What makes each: from a profile, and the UUID (32 hex digits) of the array that it is for, texts
by relative path. Raise UsageError for a profile that the format cannot carry."""

FOR_ONE_ARRAY = ("udev", "tuned")
"""The others are told the array when they are used."""
