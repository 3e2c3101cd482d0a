"""An array as people look at it: what it is, what lies on it, and its knobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from autotune import knobs
from autotune.problem.setting import Value
from autotune.quantities import show_bytes
from autotune.report.text_table import TextTable
from autotune.system.array import Array
from autotune.system.memory import DEFAULT_RAM_SHARE, budget_bytes
from autotune.system.stack import Stack, read_stack


@dataclass(frozen=True)
class KnobState:
    """One knob on one array. `ram_bytes` is what the present value may cost, `tried` what a run
    tries within the default RAM budget, `by_default` whether it does without --knobs."""

    name: str
    value: Value
    default: Value | None
    legal: str
    tried: tuple[Value, ...]
    by_default: bool
    unit: str
    ram_bytes: int
    hazards: tuple[str, ...]


def knob_states(array: Array) -> list[KnobState]:
    """The knobs that the array has. A value without an order costs no memory."""
    states = []
    most_bytes = budget_bytes(DEFAULT_RAM_SHARE, array.root)
    for knob in knobs.for_array(array, knobs.ALL):
        value = knob.read(array)
        states.append(
            KnobState(
                name=knob.name,
                value=value,
                default=knob.default(array),
                legal=knob.legal(array),
                tried=knob.choices(array, most_bytes),
                by_default=knob in knobs.DEFAULT,
                unit=knob.unit,
                ram_bytes=knob.ram_bytes(array, value),
                hazards=knob.hazards,
            )
        )
    return states


def as_data(array: Array) -> Mapping[str, Any]:
    """The same as plain data, for JSON. Sizes in bytes."""
    stack = read_stack(array)
    return {
        "device": array.device,
        "uuid": array.uuid,
        "level": array.level,
        "raid_disks": array.raid_disks,
        "chunk_bytes": array.chunk_bytes,
        "size_bytes": array.size_bytes,
        "metadata": array.metadata,
        "array_state": array.array_state,
        "sync_action": array.sync_action,
        "degraded": array.degraded,
        "read_only": array.read_only,
        "kernel": array.kernel,
        "members": [
            {
                "name": member.name,
                "disk": member.disk,
                "state": member.state,
                "media": str(member.media),
                "size_bytes": member.size_bytes,
            }
            for member in array.members
        ],
        "holders": [vars(holder) for holder in stack.holders],
        "mounts": [
            {
                "mountpoint": str(mount.mountpoint),
                "fstype": mount.fstype,
                "device": mount.device,
                "read_only": mount.read_only,
            }
            for mount in stack.mounts
        ],
        "swaps": list(stack.swaps),
        "shares_disks_with": list(stack.beside),
        "knobs": {
            state.name: {
                "value": state.value,
                "default": state.default,
                "range": state.legal,
                "tried": list(state.tried),
                "by_default": state.by_default,
                "unit": state.unit,
                "ram_bytes": state.ram_bytes,
                "hazards": list(state.hazards),
            }
            for state in knob_states(array)
        },
    }


def render(array: Array, console: Console) -> None:
    """Print the array, in 80 columns or less."""
    stack = read_stack(array)
    parts: list[RenderableType] = [_facts(array, stack), Text()]
    parts.append(_knob_table(knob_states(array)))
    console.print(Group(*parts), width=min(console.width, 80))


def _facts(array: Array, stack: Stack) -> TextTable:
    chunk = f", {show_bytes(array.chunk_bytes)} chunk" if array.chunk_bytes else ""
    facts = {
        array.device: f"{array.level}{chunk}, {show_bytes(array.size_bytes)}",
        "UUID": array.mdadm_uuid or "none",
        "State": _state(array),
        "Members": "\n".join(_members(array)),
        "On it": "\n".join(_above(stack)) or "nothing mounted, nothing held",
    }
    if stack.beside:
        facts["Beside it"] = f"{', '.join(stack.beside)} on the same disks"
    facts["Kernel"] = array.kernel
    table = TextTable("", "", whole=[0])
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(fact))
    return table


def _state(array: Array) -> str:
    words = [array.array_state]
    if array.degraded:
        words.append(f"degraded by {array.degraded}")
    if array.sync_action != "idle":
        words.append(f"{array.sync_action} running")
    if array.read_only:
        words.append("read-only")
    return ", ".join(words)


def _members(array: Array) -> list[str]:
    lines = []
    for member in array.members:
        on = f" on {member.disk}" if member.disk != member.name else ""
        state = "" if member.state == "in_sync" else f", {member.state}"
        lines.append(f"{member.name}{on}  {member.media}, {show_bytes(member.size_bytes)}{state}")
    return lines


def _above(stack: Stack) -> list[str]:
    """Each filesystem with the way down to the array, then what is not mounted."""
    labels = {holder.name: f"{holder.label} ({holder.kind})" for holder in stack.holders}
    lines = []
    for mount in stack.mounts:
        through = f", through {labels[mount.device]}" if mount.device in labels else ""
        read_only = ", read-only" if mount.read_only else ""
        lines.append(f"{mount.mountpoint}  {mount.fstype}{read_only}{through}")
    lines += [f"swap on {swap}" for swap in stack.swaps]
    mounted = {mount.device for mount in stack.mounts}
    lines += [label for name, label in labels.items() if name not in mounted]
    return lines


def _span(values: tuple[Value, ...]) -> str:
    """Numbers as "64 to 4096", names as they are."""
    if len(values) > 2 and all(isinstance(value, int) for value in values):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))


def render_list(arrays: Sequence[Array], console: Console) -> None:
    """One line for each array."""
    table = TextTable("Array", "Level", "Members", "Size", "State", "On it", whole=[2, 3])
    for array in arrays:
        on_it = ", ".join(_above(read_stack(array))) or "nothing"
        members = f"{array.raid_disks} × {array.media.value}"
        cells = (array.device, array.level, members, show_bytes(array.size_bytes))
        table.add_row(*map(Text, (*cells, _state(array), on_it)))
    console.print(table)


def _knob_table(states: list[KnobState]) -> TextTable:
    table = TextTable("Setting", "Now", "Default", "Tried", "RAM", right=[1, 2, 4], whole=[4])
    more = False
    for state in sorted(states, key=lambda each: not each.by_default):
        if not state.by_default and not more:
            more = True
            table.add_row(Text("with --knobs all, too:", style="dim"), "", "", "", "")
        differs = state.default is not None and state.value != state.default
        table.add_row(
            Text(state.name),
            Text(str(state.value), style="bold" if differs else ""),
            Text("?" if state.default is None else str(state.default)),
            Text(f"{_span(state.tried)} {state.unit}".strip()),
            Text(show_bytes(state.ram_bytes) if state.ram_bytes else ""),
        )
    return table
