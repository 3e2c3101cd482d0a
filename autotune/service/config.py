"""What the service may do, from /etc/autotune/config.toml: understood whole, or refused."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from autotune.advice.advise import NAMES
from autotune.errors import UsageError, closest
from autotune.measure.workload import load_workload, shipped
from autotune.problem.ceilings import (
    Ceiling,
    check_phases,
    parse_ceiling,
    parse_limit_ns,
)
from autotune.quantities import (
    parse_budget,
    parse_bytes,
    parse_rate,
    parse_seconds,
)
from autotune.service import CONFIG
from autotune.service.quiet_time import QuietHours, parse_window
from autotune.system import ownership
from autotune.system.sync import parse_within
from autotune.tuning.preparation import LEAST_TRIALS
from autotune.untrusted import MOST_TYPED_BYTES, first_fault, plain, read_file, read_toml

Event = Literal["adopted", "reverted", "drifted", "failed", "unheld", "mismatched"]
"""What the administrator can have a command run for."""
Word = Annotated[str, Field(max_length=200)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Care(_Table):
    """How one array is looked after. Quantities are written as on the command line."""

    workload: Word = "balanced"
    p99_ceilings: Annotated[tuple[Word, ...], Field(max_length=16)] = ()
    ram_budget: Word = "5%"
    write_budget: Word | None = None
    trials: Annotated[int, Field(ge=LEAST_TRIALS, le=1000)] = 12
    time: Word = "30min"
    window: Word | None = None
    """When it may be loaded, local time: "01:00-05:00". Default: at any quiet time."""
    adopt: bool = True
    """False: only say what would be better."""
    guard_p99: Word | None = None
    """The ceiling that `autotune guard` holds while this array syncs."""
    guard_least: Word | None = None
    """The pace below which it never holds that sync."""
    guard_finish_within: Word | None = None
    """How soon a recovery or resync is to be over that it slows down. Default: 7 days."""
    check_every: Word | None = None
    """How often the service checks this array; None: never."""
    check_temperature: Annotated[int, Field(ge=20, le=100)] = 55
    """The degrees Celsius of a member above which a check waits."""

    @model_validator(mode="after")
    def _can_be_understood(self) -> "Care":
        try:
            check_phases(self.ceilings, load_workload(self.workload).figures)
            for value in (
                self.ram,
                self.write_bytes,
                self.time_s,
                self.parsed_window,
                self.guard_ns,
                self.least,
                self.finish_s,
                self.every_s,
            ):
                del value
        except UsageError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return self

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        return tuple(parse_ceiling(text) for text in self.p99_ceilings)

    @property
    def ram(self) -> int | float:
        """Bytes, or (float) a share of all memory."""
        return parse_budget(self.ram_budget)

    @property
    def write_bytes(self) -> int | None:
        return parse_bytes(self.write_budget) if self.write_budget is not None else None

    @property
    def time_s(self) -> float:
        return parse_seconds(self.time)

    @property
    def parsed_window(self) -> QuietHours | None:
        return parse_window(self.window) if self.window is not None else None

    @property
    def guard_ns(self) -> float | None:
        return parse_limit_ns(self.guard_p99) if self.guard_p99 is not None else None

    @property
    def least(self) -> int | None:
        """Bytes per second of each member."""
        return parse_rate(self.guard_least) if self.guard_least is not None else None

    @property
    def finish_s(self) -> float | None:
        text = self.guard_finish_within
        return parse_within(text) if text is not None else None

    @property
    def every_s(self) -> float | None:
        return parse_seconds(self.check_every) if self.check_every is not None else None


class Notify(_Table):
    """A command of the administrator's own, run without a shell, with the event as JSON on its
    standard input. `on`: the events it is run for."""

    command: Annotated[tuple[Word, ...], Field(min_length=1, max_length=32)]
    on: tuple[Event, ...] = ("adopted", "reverted", "drifted", "failed", "unheld", "mismatched")

    @field_validator("command")
    @classmethod
    def _is_absolute(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        # A service has no PATH to speak of.
        if not command[0].startswith("/"):
            raise ValueError(
                "the command has to be named with its absolute path (/usr/local/bin/…)"
            )
        return command


class Advise(_Table):
    """Which findings of `autotune advise` are not to be told, by name."""

    silence: Annotated[tuple[Word, ...], Field(max_length=64)] = ()

    @field_validator("silence")
    @classmethod
    def _are_known(cls, silence: tuple[str, ...]) -> tuple[str, ...]:
        for name in silence:
            if name not in NAMES:
                raise ValueError(f'there is no finding "{name}"{closest(name, NAMES)}')
        return silence


class Metrics(_Table):
    """Where metrics go, for node_exporter's textfile collector."""

    textfile: Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]*\.prom$", max_length=400)]


class Config(_Table):
    """`defaults` hold for every array, `arrays` (by UUID, 32 hex digits) for those named."""

    defaults: Care = Care()
    arrays: dict[str, Care] = Field(default_factory=dict)
    notify: Notify | None = None
    metrics: Metrics | None = None
    advise: Advise = Advise()

    def care(self, uuid: str) -> Care:
        return self.arrays.get(uuid, self.defaults)


def load_config(path: Path = CONFIG) -> Config:
    """The configuration; one of defaults if there is no file. Raise UsageError if it cannot be
    read, for the first thing in it that makes no sense, or if it, or a workload that it names, is
    read by root and others can change it."""
    name = plain(str(path))
    if path.exists():
        ownership.refuse(path, f"The configuration {name}")
    try:
        text = read_file(path, MOST_TYPED_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise UsageError(f"The configuration {name} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"The configuration {name} {error}.") from None
    config = parse_config(text, name)
    for workload in {care.workload for care in (config.defaults, *config.arrays.values())}:
        if workload not in shipped():
            ownership.refuse(Path(workload), f"The workload {plain(workload)} of {name}")
    return config


def fault(path: Path = CONFIG) -> str | None:
    """Why the service cannot use the configuration, in a sentence; None if it can, or if who asks
    may not read it."""
    try:
        load_config(path)
    except UsageError as error:
        # Of one that only root may read, root is told.
        return str(error) if os.access(path, os.R_OK) else None
    except PermissionError:
        # Nor may they look into its folder.
        pass
    return None


def parse_config(text: str, source: str) -> Config:
    """A configuration from TOML text. Raise UsageError naming `source` and the first fault."""
    try:
        return Config.model_validate(_merged(read_toml(text)))
    except ValidationError as error:
        fault = first_fault(error)
    except ValueError as error:
        fault = plain(str(error))
    raise UsageError(f"The configuration {source} cannot be used; correct this: {fault}.")


def _merged(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each array's section on top of the defaults."""
    defaults, sections = document.get("defaults", {}), document.pop("array", {})
    for name in document.keys() & Care.model_fields.keys():
        raise ValueError(f'{name} belongs under [defaults] (all arrays) or [array."UUID"] (one)')
    if not isinstance(sections, Mapping) or not isinstance(defaults, Mapping):
        raise ValueError('arrays have tables of their own, as [array."UUID"]')
    arrays: dict[str, Any] = {}
    for name, section in sections.items():
        uuid = name.lower().replace(":", "").replace("-", "")
        if len(uuid) != 32 or set(uuid) - set("0123456789abcdef"):
            raise ValueError(f'array."{name}" is no UUID; `autotune show` has the array\'s')
        if uuid in arrays:
            raise ValueError(f'array."{name}" is there twice')
        if not isinstance(section, Mapping):
            raise ValueError(f'array."{name}" has to be a table')
        arrays[uuid] = {**defaults, **section}
    if "arrays" in document:
        raise ValueError('arrays have tables of their own, as [array."UUID"]')
    return {**document, "arrays": arrays}
