"""What has to hold of the syncs of an array and of its neighbours before a run.

Each check returns None or one whole sentence that says what is wrong and what to do.
"""

import os

from autotune.measure import live_sync
from autotune.suggested import as_root, set_by_hand
from autotune.system import neighbours, sync, sysfs
from autotune.system.array import PARITY, Array

_SYNCING = {"recover": "recovering onto a new member", "resync": "resyncing"}


def degraded(array: Array) -> str | None:
    if array.degraded == 0:
        return None
    members = "a member" if array.degraded == 1 else f"{array.degraded} members"
    if sync.real_sync(array):
        return f"{array.device} is degraded and {_SYNCING[array.sync_action]}{_or_tune_it(array)}."
    # Of mirrors one may be left; of RAID 10 it depends.
    if array.degraded > PARITY.get(array.level, array.raid_disks - 1):
        return (
            f"{array.device} lacks {members}, more than a {array.level} can bear, so no new disk "
            "brings it back: write nothing to its disks, and find out first why they are gone "
            "(`dmesg`, `mdadm --examine DISK`). If they are sound, as after a loose cable, "
            "`mdadm --stop` and `mdadm --assemble --force` may bring it back."
        )
    return (
        f"{array.device} is degraded: it lacks {members}; replace what failed with "
        f"`mdadm {array.device} --add DISK` and wait for the recovery."
    )


def resync_pending(array: Array) -> str | None:
    """The first write, or a check, starts it."""
    if not neighbours.is_pending(array, array.name):
        return None
    return (
        f"{array.device} waits for its first write to resync; start that with "
        f"`mdadm --readwrite {array.device}`, and wait until it has ended."
    )


def reshaping(array: Array) -> str | None:
    if array.reshape_position == "none":
        return None
    if array.sync_action == "reshape":
        return f"{array.device} is being reshaped; wait until /proc/mdstat shows no reshape."
    # mdadm freezes the syncs for a moment itself.
    return (
        f"A reshape of {array.device} has begun and stands still (sync_action: "
        f"{array.sync_action}); if no mdadm is at work on it, let it go on with "
        f"`mdadm --grow --continue {array.device}`, and wait until it has ended."
    )


def syncing(array: Array) -> str | None:
    if array.sync_action == "idle" or array.reshape_position != "none":
        return None
    if sync.real_sync(array):
        return f"{array.device} is {_SYNCING[array.sync_action]}{_or_tune_it(array)}."
    doing = {
        "reshape": "is being reshaped; wait until it has ended",
        "check": "is being checked; wait, or stop the check with "
        f"`{set_by_hand(array.md / 'sync_action', 'idle')}`",
        "repair": "is being repaired; wait until it has ended",
        "frozen": f"has its sync frozen; {sync.how_to_thaw(array.md)}",
    }
    what = doing.get(array.sync_action, f"is busy ({array.sync_action}); wait until it has ended")
    return f"{array.device} {what}."


def _or_tune_it(array: Array) -> str:
    return (
        "; wait until it has ended, or tune just that with "
        f"`autotune run {array.device} --workload rebuild`"
    )


def held(array: Array) -> str | None:
    """A sync that reaches sync_max waits there, at no speed at all, until it is raised."""
    bound = sysfs.read_or(array.md / "sync_max", "max")
    if bound == "max":
        return None
    if array.sync_action == "idle":
        return (
            f"The next sync of {array.device}, a rebuild too, would stand still at sync_max "
            f"({bound} sectors); unless that is meant, lift it with "
            f"`{set_by_hand(array.md / 'sync_max', 'max')}`."
        )
    return (
        f"The sync of {array.device} is bounded by sync_max ({bound} sectors) and would stand "
        f"still there; let it go on with `{set_by_hand(array.md / 'sync_max', 'max')}`."
    )


def slowed(array: Array) -> str | None:
    """A guard and its guardian that were killed may have lost their journal, too, as in a container
    whose files went with it."""
    # Others than root do not see whether a guard is at work, which sets that again and again.
    shut = f"{sync.SHUT_KIB} (local)"
    if os.geteuid() or sysfs.read_or(array.md / "sync_speed_max", "") != shut:
        return None
    return (
        f"A rebuild of {array.device} would take months: its sync_speed_max is {sync.SHUT_KIB} "
        "KiB/s, as a guard leaves it that was killed with its guardian; undo that with "
        f"`{set_by_hand(array.md / 'sync_speed_max', 'system')}`."
    )


def tuned_live(array: Array, live: str) -> str | None:
    """What to expect of a run on a real sync."""
    if not live:
        return None
    return (
        f"The {sync.NAMES[live]} of {array.device} is tuned as it runs, and never "
        f"restarted; at lower limits it is slower, or stands still, for {live_sync.WINDOW_S:.0f} s "
        "or more at a time, since the kernel goes by the mean speed of that time."
    )


def neighbour_syncing(array: Array, pending: bool = True) -> str | None:
    """md delays a sync while another array on the same disks has one."""
    found = neighbours.neighbour_syncing(array, pending)
    if found is None:
        return None
    if found.endswith(neighbours.PENDING):
        return f"{found}; let it begin with `mdadm --readwrite {found.split()[0]}`."
    return f"{found}; wait until it has ended."


def speeds_crossed(array: Array) -> str | None:
    """The kernel accepts min > max."""
    shown = sysfs.read_or(array.md / "sync_speed_min", "")
    low = shown.split(" ")[0]
    high = sysfs.read_or(array.md / "sync_speed_max", "").split(" ")[0]
    if not (low.isdigit() and high.isdigit() and int(low) > int(high)):
        return None
    # One that follows the sysctl already would stay.
    todo, name = ("lower", "min") if shown.endswith("(local)") else ("raise", "max")
    return (
        f"The sync_speed_min of {array.device} ({low}) is above its sync_speed_max ({high}); "
        f"{todo} the {name} with `{to_usual(array, f'sync_speed_{name}')}`."
    )


def to_usual(array: Array, name: str) -> str:
    """A command that makes a limit of syncs what it usually is: that of the sysctl, or the sysctl's
    own default if the array follows that already."""
    file = array.md / name
    if sysfs.read_or(file, "").endswith("(local)"):
        return set_by_hand(file, "system")
    # sysctl_speed_limit_min and _max (drivers/md/md.c)
    usual = {"sync_speed_min": "speed_limit_min=1000", "sync_speed_max": "speed_limit_max=200000"}
    return as_root(f"sysctl dev.raid.{usual[name]}")
