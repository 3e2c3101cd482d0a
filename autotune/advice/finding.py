"""The words of advice: checks, and what they bring. Pure data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from autotune.advice.array_facts import ArrayFacts

NEW_IS_LOST = "what is on NEW is lost."


@dataclass(frozen=True)
class Seen:
    """One fault that a check saw.

    `commands` mend it, as they are for a shell; none if nothing is known that does. `risk`: why
    nobody may run them unread, such as what is lost, or has to be unmounted; "" if they are safe
    while the array is in use. `note` is what else to know. `cost` stands for the check's own where
    more is known.
    """

    text: str
    commands: tuple[str, ...] = ()
    risk: str = ""
    note: str = ""
    cost: str = ""


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding. `name` never changes: configurations hold it.

    `finds` says when there is one, for the reference page; `source` is where the cost is from.
    `look` may raise `programs.UnseenError`, whose text says what it needs.
    """

    name: str
    finds: str
    cost: str
    source: str
    look: Callable[[ArrayFacts], Iterable[Seen]]


@dataclass(frozen=True)
class Finding:
    """A fault of an array, with all that is to be said about it."""

    name: str
    seen: str
    cost: str
    source: str
    commands: tuple[str, ...]
    live: bool
    note: str
    risk: str = ""


@dataclass(frozen=True)
class NotLookedAt:
    """A check that could not be made, and why: "needs lvm2 (`apt install lvm2`)"."""

    name: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """What was found on an array, what of it the administrator does not want to hear, and what
    could not be looked at."""

    device: str
    findings: tuple[Finding, ...]
    silenced: tuple[Finding, ...]
    not_looked_at: tuple[NotLookedAt, ...]
