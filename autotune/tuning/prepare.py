"""From what was asked for to what will be done. Looks at everything and changes nothing."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.knobs import (
    DEFAULT,
    Knob,
    by_name,
    consistent,
    for_array,
    harmful,
    ram_bytes,
    read_setting,
)
from autotune.measure import live_sync
from autotune.measure.fio import Target
from autotune.measure.scratch import refuse_if_shared
from autotune.measure.workload import Phase, Workload
from autotune.measure.write_budget import Written
from autotune.preflight import checks, raw_device
from autotune.problem.ceilings import Ceiling, check_phases, doubt
from autotune.problem.figure import Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.trial import Earlier
from autotune.quantities import show_bytes, show_seconds
from autotune.system import sync
from autotune.system.array import Array, find_array
from autotune.system.device_users import loop_over, program_with
from autotune.system.memory import DEFAULT_RAM_SHARE, budget_bytes
from autotune.system.scratch_space import Ground, Place, find_place, read_ground, scratch_bytes
from autotune.system.stack import Stack, read_stack

BASELINE_TRIALS = 2
BASELINE_EVERY = 6
"""After so many trials of the search the baseline comes back, so that a drift is seen."""
GIVEN = "given"
"""What a run that searches nothing has for a strategy in the store."""
DOUBTS = 4
"""At most so many trials are made of whether each change of a candidate is needed, without the
doubtful ones and with all of them in turn."""
CONFIRM_ORDER = ("winner", "baseline", "baseline", "winner")
LEAST_TRIALS = 1 + BASELINE_TRIALS + 1 + len(CONFIRM_ORDER)
"""The time of so many trials is needed to warm up, try one setting and prove it."""


@dataclass(frozen=True)
class Given:
    """A setting that comes from elsewhere, with the name that it has there."""

    name: str
    setting: Setting


@dataclass(frozen=True)
class Options:
    """What was asked for. `knobs` are those to tune, where the array has them. `ram_budget` is
    bytes (int) or a share of all memory (float), `write_budget` the bytes that a run may write in
    all, if there is a limit. With `given` nothing is searched: that setting is held against the
    original ones in turn, and the strategy is GIVEN."""

    device: str
    workload: Workload
    strategy: str = "bayes"
    trials: int = 20
    time_s: float = 1800.0
    ceilings: tuple[Ceiling, ...] = ()
    ram_budget: int | float = DEFAULT_RAM_SHARE
    scratch: Path | None = None
    destructive: str | None = None
    careful: bool | None = None
    seed: int = 0
    write_budget: int | None = None
    knobs: tuple[Knob, ...] = DEFAULT
    given: Given | None = None


@dataclass(frozen=True)
class Preparation:
    """Everything a run needs to know before it changes anything.

    `phases` can be measured here, `left_out` cannot (they write, and there is nowhere to write
    to). `scratch` is the folder for the scratch file, if phases write and the array has one.
    `ground` is what that lies on. `live` is the real sync that is under way and is tuned as it
    runs ("recover", "resync"), or "".
    `earlier` is what earlier runs showed. `user` is what has the device itself open, such as a
    virtual machine, if nothing is mounted.
    """

    options: Options
    array: Array
    stack: Stack
    findings: tuple[checks.Finding, ...]
    knobs: tuple[Knob, ...]
    baseline: Setting
    choices: dict[str, tuple[Value, ...]]
    hints: tuple[Setting, ...]
    ram_budget_bytes: int
    phases: tuple[Phase, ...]
    left_out: tuple[Phase, ...]
    scratch: Path | None
    careful: bool
    figures: tuple[Figure, ...] = field(default=())
    live: str = ""
    earlier: tuple[Earlier, ...] = ()
    ground: Ground = field(default_factory=Ground)
    user: str = ""
    costs: dict[tuple[str, Value], int] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The RAM of each value that was asked for."""

    @property
    def in_use(self) -> bool:
        """Whether anybody may feel a run."""
        return self.stack.in_use or bool(self.user)

    @property
    def why_left_out(self) -> str:
        """What the phases that are left out lack."""
        if self.live:
            return "the array is never idle"
        if self.stack.writable:
            return "there is no room for a scratch file, or it could do harm"
        if self.stack.mounts:
            return "no filesystem on the array is mounted writable"
        return "no filesystem on the array is mounted"

    @property
    def not_measured(self) -> str:
        """Which phases are left out, why, and what to do; "" if none are."""
        if not self.left_out:
            return ""
        names = ", ".join(phase.name for phase in self.left_out)
        todo = "" if self.live else " To measure writes, mount a filesystem that is on the array"
        if todo and self.stack.writable:
            todo = " To measure writes, name a folder on the array with --scratch"
        if todo and not self.in_use:
            todo += (
                f"; or, if all data on the array may be lost, use --destructive {self.array.device}"
            )
        return f"Not measured: {names}, since {self.why_left_out}.{todo}{'.' if todo else ''}"

    @property
    def said_first(self) -> tuple[str, ...]:
        """What a user should know as the run starts."""
        texts = ["" if self.live else self.not_measured, *map(doubt, self.options.ceilings)]
        return tuple(text for text in texts if text)

    def allowed(self, setting: Setting) -> bool:
        """The exact filter: inside the RAM budget, and values that go together."""
        if sum(self._cost(name, value) for name, value in setting.items()) > self.ram_budget_bytes:
            return False
        return consistent(self.array, setting) is None

    def _cost(self, name: str, value: Value) -> int:
        """A strategy asks for thousands of settings before it proposes one, and some knobs look
        through the folders of each disk's queues."""
        if (name, value) not in self.costs:
            self.costs[name, value] = by_name(name).ram_bytes(self.array, value)
        return self.costs[name, value]

    @property
    def reads(self) -> Target:
        """Loads that only read go over the raw array: nothing is destroyed, and its size keeps
        them out of the page cache."""
        return Target(Path(self.array.device), self.array.size_bytes)


def prepare(options: Options) -> Preparation:
    """Look at the array and check every precondition.

    Raise UsageError or RefusalError with the first thing that stands in the way.
    """
    array = find_array(options.device)
    stack = read_stack(array)
    live = sync.under_way(array) if options.workload.only_checks else ""
    told = options.scratch is not None or options.destructive is not None
    findings = tuple(checks.check(array, stack, live, told))
    for message in checks.refusals(findings):
        raise RefusalError(message)
    check_phases(options.ceilings, options.workload.figures)
    options = dataclasses.replace(options, ceilings=_ceilings(options, live))
    place = _scratch_place(options, array, stack)
    scratch = place.folder
    writable = scratch is not None or options.destructive is not None
    candidates = live_sync.live_phases(options.workload) if live else options.workload.phases
    phases = tuple(p for p in candidates if writable or not p.writes)
    if not any(phase.weight for phase in phases):
        if place.why_not:
            raise RefusalError(
                f'Every phase of the workload "{options.workload.name}" that counts writes, but '
                f"{place.why_not}."
            )
        raise RefusalError(
            f'Every phase of the workload "{options.workload.name}" that counts writes, and '
            f"{array.device} has no mounted filesystem to write a scratch file to; mount one, or "
            f"use --destructive {array.device} if everything on it may be lost."
        )
    _check_time(options, phases)
    if scratch is not None and any(phase.writes for phase in phases):
        Written(options.write_budget).check_scratch(scratch_bytes(scratch, place.ground))
    mine = for_array(array, options.knobs)
    if live:
        mine = live_sync.live_knobs(array, mine, phases)
    if not mine:
        names = ", ".join(knob.name for knob in options.knobs)
        raise RefusalError(
            f"{array.device} has none of the settings that are to be tuned: {names}."
        )
    baseline = read_setting(array, mine)
    budget = _ram_budget(options, array, baseline)
    choices = {
        knob.name: _with(
            baseline[knob.name],
            harmful.bearable(array, knob.name, knob.choices(array, budget)),
            knob.ordered,
        )
        for knob in mine
    }
    user = "" if stack.in_use else _user(Path(array.device))
    preparation = Preparation(
        options=options,
        array=array,
        stack=stack,
        findings=findings,
        knobs=mine,
        baseline=baseline,
        choices=choices,
        hints=(),
        ram_budget_bytes=budget,
        phases=phases,
        left_out=tuple(
            p for p in options.workload.phases if p.name not in [q.name for q in phases]
        ),
        scratch=scratch if any(phase.writes for phase in phases) else None,
        careful=stack.in_use or bool(user) if options.careful is None else options.careful,
        user=user,
        figures=tuple(figure for phase in phases for figure in phase.figures()),
        live=live,
        ground=place.ground,
    )
    return _with_hints(preparation)


def _user(device: Path) -> str:
    """What has the device open though nothing is mounted, such as a virtual machine."""
    loop = loop_over(device)
    return f"the loop device {loop}" if loop else program_with(device, 0.0) or ""


def _check_time(options: Options, phases: Sequence[Phase]) -> None:
    """Raise UsageError if the time surely leaves nothing to try: better known now than after
    the baseline."""
    least_s = LEAST_TRIALS * sum(phase.expected_seconds for phase in phases)
    if options.time_s < least_s:
        quicker = ", or choose a workload with less to measure"
        quicker += "" if options.workload.name == "quick" else ", such as --workload quick"
        raise UsageError(
            f"In {show_seconds(options.time_s)} nothing could be tried and proven: the phases of "
            f'the workload "{options.workload.name}" need {show_seconds(least_s)} at the least; '
            f"allow more (--time){quicker}."
        )


def _ceilings(options: Options, live: str) -> tuple[Ceiling, ...]:
    """The ceilings asked for, else the workload's. Raise RefusalError for one relative to idle
    if the array is never idle; the workload's are left out then."""
    if not live:
        return options.ceilings or options.workload.limits
    if any(ceiling.times_idle is not None for ceiling in options.ceilings):
        raise RefusalError(
            f"A {sync.NAMES[live]} of {options.device} is under way, so a ceiling relative "
            "to idle cannot be known; give it in ms (--p99-ceiling 50ms)."
        )
    return options.ceilings or tuple(c for c in options.workload.limits if c.times_idle is None)


def _with(value: Value, choices: tuple[Value, ...], ordered: bool) -> tuple[Value, ...]:
    """The choices with the array's own value among them."""
    if value in choices:
        return choices
    return tuple(sorted((*choices, value), key=lambda v: int(v) if ordered else str(v)))


def _with_hints(preparation: Preparation) -> Preparation:
    """The kernel's defaults are a candidate like any other."""
    array, baseline = preparation.array, preparation.baseline
    defaults = dict(baseline)
    for knob in preparation.knobs:
        value = knob.default(array)
        if value is not None and value in preparation.choices[knob.name]:
            defaults[knob.name] = value
    if defaults == dict(baseline) or not preparation.allowed(defaults):
        return preparation
    return dataclasses.replace(preparation, hints=(defaults,))


def _ram_budget(options: Options, array: Array, baseline: Setting) -> int:
    budget = budget_bytes(options.ram_budget, array.root)
    in_use = ram_bytes(array, baseline)
    if budget < in_use:
        raise RefusalError(
            f"The RAM budget of {show_bytes(budget)} is below the {show_bytes(in_use)} "
            f"that the present settings of {array.device} take; allow at least that "
            "(--ram-budget)."
        )
    return budget


def _scratch_place(options: Options, array: Array, stack: Stack) -> Place:
    """Where the scratch file goes: the folder asked for, else the array's filesystem."""
    if options.destructive is not None:
        raw_device.check_named_twice(array, options.destructive)
        raw_device.refuse_if_used(array)
        if options.scratch is not None:
            raise UsageError("--scratch and --destructive exclude each other; choose one.")
        return Place(None)
    if options.scratch is not None:
        folder = Path(os.path.realpath(options.scratch))
        if not folder.is_dir():
            raise UsageError(f"The scratch folder {options.scratch} is not a folder.")
        mount = stack.mount_for(folder)
        if mount is None:
            raise RefusalError(
                f"The scratch folder {options.scratch} is not on {array.device}, so writing there "
                "would measure something else; name a folder on the array."
            )
        if mount.read_only:
            raise RefusalError(f"{mount.mountpoint} is mounted read-only; remount it writable.")
        refuse_if_shared(folder)
        ground = read_ground(mount, array.name, array.root)
        scratch_bytes(folder, ground)
        return Place(folder, ground)
    found = find_place(stack, array)
    if found.folder is not None:
        refuse_if_shared(found.folder)
    return found
