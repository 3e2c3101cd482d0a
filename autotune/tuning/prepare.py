"""From what was asked for to what will be done. Looks at everything and changes nothing."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from autotune.deploy.left_alone import left_alone
from autotune.errors import NotNowError, RefusalError, UsageError
from autotune.knobs import (
    Knob,
    for_array,
    harmful,
    ram_bytes,
    read_setting,
)
from autotune.knobs.stripe_cache import grows
from autotune.measure import live_sync
from autotune.measure.workload import Phase
from autotune.measure.write_budget import Written
from autotune.preflight import check_schedule, checks, filesystems, raw_device
from autotune.problem.ceilings import Ceiling, check_phases
from autotune.problem.setting import Setting, Value
from autotune.quantities import show_bytes, show_seconds
from autotune.system import sync
from autotune.system.array import Array, find_array
from autotune.system.device_users import kernel_user, program_with
from autotune.system.memory import budget_bytes
from autotune.system.neighbours import sharing
from autotune.system.scratch_space import Place, find_place, refuse_if_shared, scratch_bytes
from autotune.system.stack import Stack, read_stack
from autotune.system.underlying import read_underlying
from autotune.tuning.preparation import LEAST_TRIALS, Options, Preparation

_IF_EMPTY = "if everything on it may be lost, use --destructive"


def prepare(options: Options, state_dir: Path) -> Preparation:
    """Look at the array and check every precondition.

    Raise UsageError or RefusalError with the first thing that stands in the way.
    """
    array = find_array(options.device)
    stack = read_stack(array)
    live = sync.real_sync(array) if options.workload.only_checks else ""
    told = options.scratch is not None or options.destructive is not None
    findings = tuple(checks.check(array, stack, live, told))
    for message in checks.refusals(findings):
        raise RefusalError(message)
    check_phases(options.ceilings, options.workload.figures)
    asked = options.ceilings
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
            f"{array.device} has no mounted filesystem to write a scratch file to; mount one"
            + ("." if stack.in_use else f", or, {_IF_EMPTY} {array.device}.")
        )
    findings += tuple(_unmeasured(asked, phases))
    _check_time(options, array, phases, live)
    if not live and any(phase.check for phase in phases):
        _refuse_before_checks(array, options)
    if scratch is not None and any(phase.writes for phase in phases):
        Written(options.write_budget).check_scratch(scratch_bytes(scratch, place.underlying))
    mine = for_array(array, options.knobs)
    if live:
        mine = live_sync.live_knobs(array, mine, phases)
    mine, left_out = _without_left_alone(mine, options, array, state_dir)
    if not mine and left_out:
        raise RefusalError(f"Nothing is left to tune on {array.device}. {left_out}")
    if not mine:
        names = ", ".join(knob.name for knob in options.knobs)
        raise RefusalError(
            f"{array.device} has none of the settings that are to be tuned: {names}."
        )
    baseline = read_setting(array, mine)
    budget = _ram_budget(options, array, baseline)
    given = options.given.setting if options.given is not None else {}
    choices = {}
    for knob in mine:
        found = harmful.bearable(array, knob.name, knob.choices(array, budget))
        for value in (baseline[knob.name], given.get(knob.name, baseline[knob.name])):
            found = _with(value, found, knob.ordered)
        choices[knob.name] = found
    user = "" if stack.in_use else _user(array)
    near = (each.device for each in sharing(array) if read_stack(each).in_use or _user(each))
    neighbour = next(near, "")
    in_use = stack.in_use or bool(user or neighbour)
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
        careful=in_use if options.careful is None else options.careful,
        user=user,
        neighbour=neighbour,
        figures=tuple(figure for phase in phases for figure in phase.figures()),
        live=live,
        underlying=place.underlying,
        no_place=place.why_not,
        left_alone=left_out,
        state_dir=state_dir,
    )
    return _with_hints(preparation)


def _without_left_alone(
    knobs: tuple[Knob, ...], options: Options, array: Array, state_dir: Path
) -> tuple[tuple[Knob, ...], str]:
    """The knobs that are not left alone, and the sentences that say which are, or "". Raise
    RefusalError if that was given to be measured."""
    left, said = left_alone((knob.name for knob in knobs), array, state_dir)
    for knob in knobs:
        # Each trial sets it, be it to what it was: dev.raid.speed_limit_min may be 0.
        if reason := knob.valid(array, knob.read(array)):
            why = f"{knob.name}: left as found, since a run could not set it again. {reason}"
            left, said = left | {knob.name}, f"{said} {why}".strip()
    if left and options.given is not None:
        raise RefusalError(f"{options.given.name} cannot be measured on {array.device}. {said}")
    return tuple(knob for knob in knobs if knob.name not in left), said


def _user(array: Array) -> str:
    """What has the device open though nothing is mounted, such as a virtual machine."""
    device = Path(array.device)
    try:
        found = kernel_user(device) or program_with(device, 0.0) or ""
    except RefusalError:
        return "a program that must not be looked into, perhaps,"
    if not found and raw_device.is_claimed(array):
        return "something that is not seen from here, perhaps in a container,"
    return found


def _unmeasured(
    asked: Sequence[Ceiling], phases: Sequence[Phase]
) -> Iterator[checks.PreflightFinding]:
    """Which ceilings are of a phase that is left out here."""
    measured = {phase.name for phase in phases}
    for ceiling in asked:
        if ceiling.phase is not None and ceiling.phase not in measured:
            yield checks.PreflightFinding(
                "warn",
                f"The ceiling {ceiling} is not judged: the phase {ceiling.phase} is not measured "
                "on this array.",
            )


def _check_time(options: Options, array: Array, phases: Sequence[Phase], live: str) -> None:
    """Raise UsageError if the time surely leaves nothing to try: better known now than after
    the baseline."""
    least_s = LEAST_TRIALS * sum(phase.expected_seconds for phase in phases)
    if grows(array) and not live:
        least_s += max(phase.growth_s for phase in phases)
    if options.time_s < least_s:
        quicker = ", or choose a workload with less to measure"
        quicker += "" if options.workload.name == "quick" else ", such as --workload quick"
        raise UsageError(
            f"In {show_seconds(options.time_s)} nothing could be tried and proven: the phases of "
            f'the workload "{options.workload.name}" need {show_seconds(least_s)} at the least; '
            f"allow more (--time){quicker}."
        )


def _refuse_before_checks(array: Array, options: Options) -> None:
    """Raise NotNowError if the machine's own check would find one of this run's."""
    why = check_schedule.skipped(array.root, datetime.now().astimezone(), options.time_s)
    if why is not None:
        raise NotNowError(why)


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
        filesystems.refuse_failed(folder, stack)
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
        underlying = read_underlying(mount, array.name, array.root)
        scratch_bytes(folder, underlying)
        return Place(folder, underlying)
    return find_place(stack, array)
