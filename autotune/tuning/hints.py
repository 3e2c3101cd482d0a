"""What the catalogue has for an array, as settings that a search may look at. Changes nothing."""

import math
from collections.abc import Iterable, Sequence

from autotune.deploy.catalogue import Entry, StartingPoint, plan_of
from autotune.errors import UsageError
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value, setting_key
from autotune.tuning.preparation import Preparation

NEWEST = 20
"""How many own profiles are looked at."""


def hints(preparation: Preparation, known: Iterable[Entry]) -> tuple[Setting, ...]:
    """The settings that the catalogue's entries come to on the array, by the knobs that are tuned,
    each value being the nearest that may be tried. What does not fit is left out."""
    array, budget = preparation.array, preparation.ram_budget_bytes
    found: dict[object, Setting] = {}
    own = 0
    for entry in known:
        own += entry.kind == "own"
        if own > NEWEST:
            break
        values = entry.item.values if isinstance(entry.item, StartingPoint) else entry.item.knobs
        tuned = {name: value for name, value in values.items() if name in preparation.choices}
        try:
            planned = plan_of(_with(entry.item, tuned), array, budget) if tuned else None
        except UsageError:
            continue
        if planned is None or planned.refusals:
            continue
        near = {n: _nearest(preparation.choices[n], v) for n, v in planned.setting.items()}
        setting = {**preparation.baseline, **{n: v for n, v in near.items() if v is not None}}
        if setting != dict(preparation.baseline) and preparation.allowed(setting):
            found[setting_key(setting)] = setting
    return tuple(found.values())


def _with(item: Profile | StartingPoint, values: Setting) -> Profile | StartingPoint:
    if isinstance(item, Profile):
        return item.model_copy(update={"knobs": dict(values)})
    return item.model_copy(update={"knobs": {name: item.knobs[name] for name in values}})


def _nearest(choices: Sequence[Value], value: Value) -> Value | None:
    """The choice that is the smallest factor away; None if there is no such."""
    if value in choices:
        return value
    numbers = [choice for choice in choices if isinstance(choice, int) and choice > 0]
    if not isinstance(value, int) or value <= 0 or not numbers:
        return None
    return min(numbers, key=lambda choice: abs(math.log(choice / value)))
