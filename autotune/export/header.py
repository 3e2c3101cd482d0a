"""What stands above every export: what the values were proven on, and what the format lacks."""

import json
import re
import textwrap
from collections.abc import Sequence

from pydantic import ValidationError

from autotune.export.steps import cache_stripes, harmless
from autotune.problem.profile import Profile, digest
from autotune.quantities import show_bytes

_ORIGIN = re.compile(r"Made by autotune from the profile ([^()]{1,120}( \([0-9a-f]{12}\))?)\.\s")


def origin(profile: Profile) -> str:
    """Which profile, with some digits of its array by which two of one name are told apart: it has
    the name of its array and workload, which many hosts have."""
    return f"{harmless(profile.name)} of {profile.created:%Y-%m-%d} ({_digits(profile)})"


def is_from(text: str, profile: Profile) -> bool:
    """Whether an exported file was made from this profile, or an earlier one of the same array."""
    return (origin_of(text) or "").endswith(f"({_digits(profile)})")


def origin_of(text: str) -> str | None:
    """The profile that an exported file was made from, as `origin` has it; None if it is none."""
    if text.startswith("{"):
        try:
            return origin(Profile.model_validate_json(text))
        except ValidationError:
            return None
    found = _ORIGIN.search(re.sub(r"\n#? +", " ", text))
    return found[1] if found else None


def _digits(profile: Profile) -> str:
    if profile.proven_on.uuid:
        return profile.proven_on.uuid[:12]
    # Without defaults, since a later version may have more of these.
    document = profile.model_dump(mode="json", exclude_defaults=True)
    return digest(json.dumps(document, sort_keys=True).encode())[:12]


def proven(profile: Profile) -> list[str]:
    """Whole sentences about where the values come from, safe in any comment."""
    where, evidence = profile.proven_on, profile.evidence
    chunk = f", chunk {where.chunk_kib} KiB" if where.chunk_kib else ""
    sure = (
        "original settings and these measured in turn"
        if evidence.confirmed
        else "not measured in turn with the original settings"
    )
    measured = "Proven" if evidence.confirmed else "Measured, not proven,"
    said = [
        f"Made by autotune from the profile {origin(profile)}.",
        f"{measured} on: {harmless(where.level)} of {where.members} {where.media}{chunk}, kernel "
        f"{harmless(where.kernel)}, workload {harmless(profile.workload)}.",
        f"Gain there: x{evidence.gain:.2f} (95 % interval {evidence.low:.2f} to "
        f"{evidence.high:.2f}), {sure}.",
    ]
    stripes = cache_stripes(profile)
    if stripes:
        said.append(
            f"RAM: up to {show_bytes(profile.ram_bytes)} on that array; its {stripes} stripes "
            "take about 4.5 KiB each for every member."
        )
    return said


def comment(profile: Profile, *more: str, lacks: Sequence[str]) -> str:
    """The header as lines that begin with `#`."""
    said = [*proven(profile), *more, *(f"Cannot: {text}" for text in lacks)]
    lines = [line for text in said for line in textwrap.wrap(text, 96, subsequent_indent="  ")]
    return "".join(f"# {line}\n" for line in lines)
