"""What stands above every export: what the values were proven on, and what the format lacks."""

import textwrap
from collections.abc import Sequence

from autotune.export.steps import cache_stripes, harmless
from autotune.problem.profile import Profile
from autotune.quantities import show_bytes


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
        f"Made by autotune from the profile {harmless(profile.name)} of "
        f"{profile.created:%Y-%m-%d}.",
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
