"""One POSIX script that applies, shows and undoes. TuneD, systemd and Ansible run the same one."""

from importlib import resources

from autotune.export.header import comment
from autotune.export.steps import MAX, cache_stripes, level, slug, steps
from autotune.knobs.harmful import LONGEST_REBUILD_DAYS
from autotune.problem.profile import Profile

_LACKS = (
    "make the values last: run it again after each start and each assembly.",
    "rescale the values to other members or less memory; it refuses a stripe cache that would "
    "take over half of what is free.",
    "undo one of two profiles on the same array: both are undone. On a disk of two arrays, what "
    "both have set goes back once both are undone.",
    "undo what was set before the machine was last started: that is gone anyway.",
)


def render(profile: Profile, _uuid: str) -> dict[str, str]:
    """The script, for any array of the class."""
    return {f"{script_name(profile)}.sh": script(profile)}


def script_name(profile: Profile) -> str:
    """What the script is called, and where it is installed the units and folders around it."""
    return f"autotune-profile-{slug(profile)}"


def script(profile: Profile, lacks: tuple[str, ...] = _LACKS) -> str:
    """The script's text."""
    lines = []
    for step in steps(profile):
        words = ("disk" if step.on_disks else "array", step.file, step.text)
        lines.append(" ".join((*words, "passing") if step.passing else words))
    fastest = next((step.text for step in steps(profile) if step.file == MAX), "0")
    values = {
        "STEPS": "\n".join(lines),
        "LEVEL": level(profile),
        "CHUNK": str(profile.proven_on.chunk_kib * 1024),
        "STRIPES": str(cache_stripes(profile)),
        "SLOWEST": fastest,
        "DAYS": str(LONGEST_REBUILD_DAYS),
        "ROTATING": str(int(profile.proven_on.media == "hdd")),
        "NAME": slug(profile),
    }
    text = resources.files("autotune.export").joinpath("script.sh").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return "#!/bin/sh\n" + comment(profile, lacks=lacks) + text
