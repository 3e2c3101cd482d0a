"""What a run will be like, said before it: for `doctor` and the dry run."""

from collections.abc import Iterator
from typing import Any

from autotune.quantities import show_bytes, show_rate, show_seconds
from autotune.system.array import Media
from autotune.tuning.preparation import Preparation
from autotune.tuning.run_cost import RunCost, run_cost


def cost_document(cost: RunCost) -> dict[str, Any]:
    """Bytes and seconds, all at most; `worn` is a share of a member's size."""
    return {
        "seconds": cost.seconds,
        "trials": cost.trials,
        "trial_seconds": cost.trial_s,
        "loaded_seconds": cost.loaded_s,
        "long_load_seconds": cost.long_s,
        "scratch_bytes": cost.scratch_bytes,
        "written_bytes": cost.written_bytes,
        "written_bytes_per_member": cost.member_bytes,
        "written_share_of_member": cost.worn,
    }


def time_line(cost: RunCost) -> str:
    """How long the run lasts, and one trial."""
    return (
        f"Time: at most {show_seconds(cost.seconds)} (--time, --trials). A trial of all phases "
        f"takes about {show_seconds(cost.trial_s)}."
    )


def careful_line(preparation: Preparation) -> str:
    """Whether the array is in use, and so how it is treated."""
    stack = preparation.stack
    lies = [f"{mount.fstype} on {mount.mountpoint}" for mount in stack.mounts]
    lies += [f"swap on {swap}" for swap in stack.swaps]
    lies += [f"the {holder.kind} device {holder.label}" for holder in stack.holders if not lies]
    lies += [f"{user} has the device open" for user in (preparation.user,) if user and not lies]
    use = f"In use: {', '.join(lies)}." if lies else "Not in use: nothing is mounted on it."
    if preparation.neighbour:
        use += f" {preparation.neighbour}, on the same disks, is in use."
    if preparation.careful:
        return f"{use} A run is careful: it tries only combinations likely to meet the ceilings."
    return f"{use} A run is eager: it tries any combination, also one that may break a ceiling."


def write_lines(preparation: Preparation, cost: RunCost) -> Iterator[str]:
    """Where it writes, how much, and what that means for SSDs; what is not measured, and why."""
    options, device = preparation.options, preparation.array.device
    if options.destructive is not None:
        yield f"Writes go to {device} itself: all data on it is lost."
    elif preparation.scratch is not None:
        yield (
            f"Writes go only to a scratch file of {show_bytes(cost.scratch_bytes)} in "
            f"{preparation.scratch}, which is removed at the end."
        )
    else:
        yield "Nothing is written to the array."
    if cost.written_bytes:
        limit = (
            "the limit of --write-budget"
            if cost.written_bytes == options.write_budget
            else f"if each member writes {show_rate(cost.rate)}. It is usually less, since not "
            "every trial writes; --write-budget limits it"
        )
        yield f"Written in total: up to {show_bytes(cost.written_bytes)}, {limit}."
    if cost.written_bytes and preparation.array.media is not Media.HDD:
        yield (
            f"Of that, with copies and parity, up to {show_bytes(cost.member_bytes)} "
            f"go to each SSD, {_times(cost.worn)} its size. Data sheets (TBW) usually allow "
            "several hundred times."
        )
    array = preparation.array
    journals = [member.name for member in array.members if "journal" in member.state.split(",")]
    for journal in journals if cost.written_bytes else ():
        most = show_bytes(cost.member_bytes * array.raid_disks)
        yield f"The write journal {journal} gets all of it, parity too: up to {most}."
    if preparation.left_out:
        yield preparation.not_measured


def _times(worn: float) -> str:
    return f"{worn:.0f} times" if worn >= 10 else f"{worn:.2g} times"


def load_lines(preparation: Preparation, cost: RunCost) -> Iterator[str]:
    """What users of the array will feel, and what watches it will see."""
    if cost.loaded_s:
        yield (
            f"In each trial, the disks are fully busy for up to {show_seconds(cost.loaded_s)} "
            f"of {show_seconds(cost.trial_s)}. Requests of others then take longer, as during "
            "a large copy or a check of the array."
        )
    for phase in preparation.phases:
        if phase.check and not preparation.live:
            yield (
                f"The phase {phase.name} is a check of the array, which the run starts and stops "
                "many times. It changes no data; monitoring may report it, and mismatch_cnt is "
                "reset."
            )


def notice_lines(preparation: Preparation, cost: RunCost) -> Iterator[str]:
    """The same, and when it is longest and how it ends."""
    yield from load_lines(preparation, cost)
    if cost.long_s:
        yield (
            f"The longest load comes at the end of the proof: {show_seconds(cost.long_s)} of "
            "writing with the new settings, and as long with the original ones. It is left out if "
            "the stripe cache is not changed."
        )
    yield "A trial that certainly breaks a ceiling ends at once. Ctrl-C ends the run at any time."


def summary(preparation: Preparation) -> list[str]:
    """What a run would be like, in a few lines."""
    expected = run_cost(preparation)
    names = ", ".join(phase.name for phase in preparation.phases)
    return [
        careful_line(preparation),
        *write_lines(preparation, expected),
        f"Measured: {names} (workload {preparation.options.workload.name}).",
        *load_lines(preparation, expected),
        f"RAM for settings: at most {show_bytes(preparation.ram_budget_bytes)} (--ram-budget).",
        time_line(expected),
    ]


def run_document(preparation: Preparation) -> dict[str, Any]:
    """The same for programs."""
    return {
        "in_use": preparation.in_use,
        "careful": preparation.careful,
        "workload": preparation.options.workload.name,
        "phases": [phase.name for phase in preparation.phases],
        "left_out": [phase.name for phase in preparation.left_out],
        "not_measured": preparation.not_measured,
        "scratch_folder": str(preparation.scratch) if preparation.scratch else None,
        "ram_budget_bytes": preparation.ram_budget_bytes,
        "expected": cost_document(run_cost(preparation)),
    }
