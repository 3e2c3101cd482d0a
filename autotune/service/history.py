"""What the passes of re-tuning leave for those after them: one small file for each array."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    ValidationError,
)

from autotune import durable
from autotune.errors import AutotuneError
from autotune.problem.figure import Estimate
from autotune.problem.profile import FigureName, KnobName, KnobValue
from autotune.service.policy import LastSeen, Pass
from autotune.untrusted import MOST_KEPT_BYTES, first_fault, read_file

MOST_PASSES = 200
"""Older ones are forgotten: four years of a weekly timer."""


Measured = tuple[PositiveFloat, NonNegativeFloat]
"""A figure, of which there is no logarithm at 0, and its spread."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PassRecord(_Strict):
    """One pass. `gain`: the profile over the originals as (ratio, low, high); `better`: what was
    adopted or advised over what was there. `drift`: the objective over that when it was adopted."""

    at: datetime
    outcome: str
    reasons: tuple[str, ...] = ()
    gain: tuple[float, float, float] | None = None
    better: tuple[float, float, float] | None = None
    drift: float = 1.0
    trials: int = 0
    seconds: float = 0.0
    bytes_written: int = 0


class Remembered(_Strict):
    """An array's passes, the newest last, and what is compared with: the `figures` of the time
    when the profile was adopted. `latest` are those of the newest pass."""

    fingerprint: str = ""
    setting: dict[KnobName, KnobValue] = Field(default_factory=dict)
    figures: dict[FigureName, Measured] = Field(default_factory=dict)
    latest: dict[FigureName, Measured] = Field(default_factory=dict)
    ceilings: dict[FigureName, PositiveFloat] = Field(default_factory=dict)
    passes: Annotated[tuple[PassRecord, ...], Field(max_length=MOST_PASSES)] = ()

    @property
    def known(self) -> LastSeen | None:
        if not self.fingerprint:
            return None
        figures = {name: Estimate(*pair) for name, pair in self.figures.items()}
        return LastSeen(self.fingerprint, self.setting, figures)

    def after(self, done: Pass, record: PassRecord, ceilings: dict[str, float]) -> "Remembered":
        """With another pass."""
        known = done.known
        return Remembered(
            fingerprint=known.fingerprint,
            setting=dict(known.setting),
            figures={name: (e.value, e.spread) for name, e in known.figures.items()},
            latest={name: (e.value, e.spread) for name, e in done.latest.items()},
            ceilings=ceilings,
            passes=(*self.passes, record)[-MOST_PASSES:],
        )

    def failed(self, record: PassRecord) -> "Remembered":
        """With a pass that came to nothing."""
        return self.model_copy(update={"passes": (*self.passes, record)[-MOST_PASSES:]})


def path_of(state_dir: Path, uuid: str) -> Path:
    return state_dir / "retune" / f"{uuid}.json"


def load(state_dir: Path, uuid: str) -> Remembered:
    """What is remembered of an array, nothing at first. AutotuneError if it cannot be read."""
    path = path_of(state_dir, uuid)
    try:
        return Remembered.model_validate_json(read_file(path, MOST_KEPT_BYTES))
    except FileNotFoundError:
        return Remembered()
    except ValidationError as error:
        fault = f"is damaged ({first_fault(error)})"
    except ValueError as error:
        fault = str(error)
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    raise AutotuneError(f"{path} {fault}; remove it, and the next pass is a first one.")


def save(remembered: Remembered, state_dir: Path, uuid: str) -> None:
    """Whole or not at all. Raise AutotuneError if the disk does not take it."""
    path = path_of(state_dir, uuid)
    try:
        durable.private_folder(path.parent)
        durable.replace(path, remembered.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise AutotuneError(f"{path} cannot be written: {error.strerror}.") from None
