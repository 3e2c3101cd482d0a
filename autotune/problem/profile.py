"""The portable profile: the result of a run, with its evidence. Data, never code."""

import hashlib
from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
)

from autotune.untrusted import printable

SCHEMA: Literal[1] = 1

ShortText = Annotated[str, Field(max_length=200), AfterValidator(printable)]
KnobName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
KnobText = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_,-]{0,400}$")]
KnobValue = Annotated[StrictInt, Field(gt=-(1 << 63), lt=1 << 63)] | KnobText
DiskNumbers = Annotated[StrictStr, Field(pattern=r"^[0-9]{1,19}(,[0-9]{1,19}){1,4095}$")]
"""One for each disk: "64,128". No setting, but what disks may have had."""
DiskId = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9!_.:-]{1,64}$")]
Bytes = Annotated[int, Field(ge=0, lt=1 << 63)]
FigureName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9_]+$", max_length=64)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ProvenOn(Strict):
    """The class of array that the values were proven on."""

    level: ShortText
    members: Annotated[int, Field(ge=1, le=4096)]
    chunk_kib: Annotated[int, Field(ge=0, lt=1 << 31)]
    media: Literal["hdd", "ssd", "nvme"]
    kernel: ShortText
    uuid: Annotated[str, Field(pattern=r"^[0-9a-f]{0,32}$")] = ""
    member_kib_s: Annotated[int, Field(gt=0, lt=1 << 40)] | None = None
    """How fast the slowest member read in sequence, if sync speeds are set and it was measured."""


class FigureEvidence(Strict):
    """One figure, before and after, measured in turn: bytes/s, or ns for latencies. `ratio` is
    after / before with its 95 % interval."""

    before: Annotated[float, Field(gt=0)]
    after: Annotated[float, Field(gt=0)]
    ratio: Annotated[float, Field(gt=0)]
    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]
    conclusion: Literal["better", "no difference", "worse"]
    ceiling: Annotated[float, Field(gt=0)] | None = None


class LongEvidence(Strict):
    """What a load of so many seconds showed of one figure: after / before with its interval."""

    seconds: Annotated[float, Field(gt=0)]
    ratio: Annotated[float, Field(gt=0)]
    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]


class Evidence(Strict):
    """What the claim rests on. `gain` is the objective, 1.0 as the baseline. `confirmed`: winner
    and baseline were measured in turn and differed beyond noise; if not, the figures are those of
    the search, chosen among many, and so may flatter. What does not say it is not confirmed."""

    confirmed: bool = False
    gain: Annotated[float, Field(gt=0)]
    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]
    trials: Annotated[int, Field(ge=0, lt=1 << 31)]
    seconds: Annotated[float, Field(ge=0)]
    figures: Annotated[dict[FigureName, FigureEvidence], Field(max_length=200)]
    long: Annotated[dict[FigureName, LongEvidence], Field(max_length=200)] = {}
    """By figure, where the kernel's own growth of the stripe cache may change the gain."""


class Profile(Strict):
    """Knob values for one class of array."""

    schema_version: Literal[1] = SCHEMA
    name: ShortText
    created: datetime
    proven_on: ProvenOn
    workload: ShortText
    knobs: Annotated[dict[KnobName, KnobValue], Field(max_length=40)]
    before: Annotated[dict[KnobName, KnobValue | DiskNumbers], Field(max_length=40)]
    disks: Annotated[tuple[DiskId, ...], Field(max_length=4096)] = ()
    """Of which disks, in order, those values in `before` are that name one for each."""
    system: Annotated[tuple[KnobName, ...], Field(max_length=40)] | None = None
    """Which of `before` followed a sysctl, and were no values of the array's own; None: not
    known."""
    ram_bytes: Bytes
    ram_budget_bytes: Bytes
    evidence: Evidence


def as_text(profile: Profile) -> str:
    return profile.model_dump_json(indent=2) + "\n"


def digest(text: bytes) -> str:
    """By which a record knows a profile from another one in its place."""
    return hashlib.sha256(text).hexdigest()
