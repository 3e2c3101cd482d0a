"""A profile from elsewhere: matched, rescaled, measured here, and kept only if it is no worse."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from autotune.deploy.apply import apply_profile
from autotune.deploy.catalogue import StartingPoint, plan_of
from autotune.deploy.left_alone import left_alone
from autotune.deploy.rescale import Plan, without
from autotune.errors import UsageError
from autotune.knobs import by_name, ram_bytes, read_setting
from autotune.measure.member_speed import member_kib_s
from autotune.measure.workload import Workload, load_workload, shipped
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety.paths import applied_profile_path
from autotune.system import sync
from autotune.system.array import Array, find_array
from autotune.system.memory import budget_bytes
from autotune.tuning.preparation import GIVEN, Given, Options
from autotune.tuning.reporter import Reporter
from autotune.tuning.run import Done, run


@dataclass(frozen=True)
class Arrival:
    """What became of a profile on an array. `before` is the setting that was found there; `done`
    is the run that measured it, if there was one, and `path` the profile as it is here."""

    device: str
    plan: Plan
    kept: bool
    reason: str
    before: Setting = dataclasses.field(default_factory=dict)
    done: Done | None = None
    path: Path | None = None


def workload_of(
    item: Profile | StartingPoint, name_or_path: str | None, verify: bool = True
) -> Workload:
    """The workload asked for, else the one that it was proven with. Raise UsageError if that is
    not shipped: a profile says a name, and no file is opened because a profile says so. Without
    `verify` nothing is measured with it, so any will do."""
    if name_or_path is not None:
        return load_workload(name_or_path)
    if not verify:
        return load_workload(shipped()[0])
    if item.workload not in shipped():
        raise UsageError(
            f'It was proven with the workload "{item.workload}", which is not shipped; name the '
            f"one to measure with (--workload): {', '.join(shipped())}, or a file."
        )
    return load_workload(item.workload)


def planned(item: Profile | StartingPoint, options: Options, state_dir: Path) -> Plan:
    """What it comes to on the array, which is read from for some seconds if that matters. What is
    left alone is left out."""
    array = find_array(options.device)
    budget = budget_bytes(options.ram_budget, array.root)
    plan = plan_of(item, array, budget, _rate(item, array))
    left, said = left_alone(plan.setting, array, state_dir)
    return without(plan, left, said) if left else plan


def _rate(item: Profile | StartingPoint, array: Array) -> int | None:
    """How fast the members read, if that makes a difference."""
    if not isinstance(item, Profile) or item.proven_on.member_kib_s is None:
        return None
    return member_kib_s(array) if set(sync.SPEEDS) & set(item.knobs) else None


def given(item: Profile | StartingPoint, options: Options, plan: Plan) -> Options:
    """The options of the run that holds the plan's setting against the present one."""
    knobs = tuple(by_name(name) for name in plan.setting)
    setting = Given(item.name, plan.setting)
    return dataclasses.replace(options, given=setting, knobs=knobs, strategy=GIVEN)


def bring(
    item: Profile | StartingPoint,
    options: Options,
    plan: Plan,
    state_dir: Path,
    reporter: Reporter,
    verify: bool = True,
) -> Arrival:
    """Put a plan without refusals into force, until the next reboot: after measuring it against
    what is there, in turn, and only if it is no worse and the ceilings hold; else everything is
    put back. Without `verify` at once. Raise AutotuneError if it comes to nothing."""
    array = find_array(options.device)
    before = read_setting(array, [by_name(name) for name in plan.setting])
    same = before == plan.setting
    if same and isinstance(item, StartingPoint):
        return Arrival(array.device, plan, True, "as it was already", before)
    if same or not verify:
        apply_profile(
            _as_profile(item, options, plan, array),
            array.device,
            state_dir,
            reporter.notice,
            budget_bytes(options.ram_budget, array.root),
        )
        reason = "as it was already" if same else "not measured here"
        path = applied_profile_path(state_dir, array.uuid)
        return Arrival(array.device, plan, True, reason, before, path=path)
    done = run(given(item, options, plan), state_dir, reporter, keep=True)
    result = done.result
    return Arrival(array.device, plan, result.keep, result.reason, before, done, done.path)


def _as_profile(
    item: Profile | StartingPoint, options: Options, plan: Plan, array: Array
) -> Profile:
    """The profile with the values that it comes to here, its evidence being that from there."""
    if isinstance(item, StartingPoint):
        raise UsageError(
            f'"{item.name}" is a starting point that was proven nowhere, so it is only applied '
            "after it was measured: leave out --no-verify."
        )
    return item.model_copy(
        update={
            "knobs": dict(plan.setting),
            "ram_bytes": ram_bytes(array, plan.setting),
            "ram_budget_bytes": budget_bytes(options.ram_budget, array.root),
        }
    )
