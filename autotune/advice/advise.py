"""All checks on one array."""

from collections.abc import Collection
from pathlib import Path

from autotune.advice import alignment, bitmap, geometry, measured, members, mounts, parity, queues
from autotune.advice.array_facts import ArrayFacts
from autotune.advice.finding import Advice, Finding, FindingKind, NotLookedAt, Seen
from autotune.deploy.in_force import active
from autotune.system.array import Array
from autotune.system.programs import UnseenError
from autotune.system.stack import read_stack

CHECKS: tuple[FindingKind, ...] = (
    *alignment.CHECKS,
    *geometry.CHECKS,
    *mounts.CHECKS,
    *bitmap.CHECKS,
    *members.CHECKS,
    *queues.CHECKS,
    *parity.CHECKS,
)
NAMES = tuple(check.name for check in CHECKS)


def advise(
    array: Array, state_dir: Path, silence: Collection[str] = (), measure: bool = True
) -> Advice:
    """What could be better about an array. `silence` are names of findings that are put aside.
    With `measure`, the members are read for some seconds, if nobody uses them.

    Nothing is written, and no missing program or permission ends it.
    """
    speeds, why_not = measured.speeds(array) if measure else ({}, "the disks were not to be read")
    facts = ArrayFacts(array, read_stack(array), speeds, why_not, _proven(array, state_dir))
    found, missing = [], []
    for check in CHECKS:
        try:
            for seen in check.look(facts):
                found.append(_finding(check, seen))
        except UnseenError as error:
            missing.append(NotLookedAt(check.name, str(error)))
    return Advice(
        array.device,
        tuple(finding for finding in found if finding.name not in silence),
        tuple(finding for finding in found if finding.name in silence),
        tuple(each for each in missing if each.name not in silence),
    )


def _finding(check: FindingKind, seen: Seen) -> Finding:
    cost = seen.cost or check.cost
    return Finding(
        check.name,
        seen.text,
        cost,
        check.source,
        seen.commands,
        not seen.risk,
        seen.note,
        seen.risk,
    )


def _proven(array: Array, state_dir: Path) -> frozenset[str]:
    """The knobs that the profiles in force set; none where that cannot be seen."""
    try:
        profiles = active(array, state_dir, damaged=[])
    except OSError:
        return frozenset()
    return frozenset(knob for each in profiles for knob in each.profile.knobs)
