"""How a member is replaced while the array stays in use."""

from autotune.advice.array_facts import ArrayFacts


def commands(facts: ArrayFacts, names: list[str]) -> tuple[str, ...]:
    """The commands that replace these members. None while one is missing: what is added then
    becomes that one."""
    array = facts.array.device
    if facts.array.degraded:
        return ()
    return tuple(
        line
        for name in names
        for line in (
            f"mdadm {array} --add NEW",
            f"mdadm {array} --replace /dev/{name} --with NEW",
        )
    )


def note(facts: ArrayFacts, new: str) -> str:
    """What to know of that; `new` describes NEW."""
    if facts.array.degraded:
        return "First replace the member that is missing."
    return f"{new} The array keeps its redundancy meanwhile; it takes as long as a rebuild."
