"""What earlier runs left on an array, or interrupted checks did. Changes nothing."""

import contextlib
import os
import shlex
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.preflight.checks import PreflightFinding
from autotune.safety.applied import is_applied
from autotune.safety.journal import Journal
from autotune.safety.own_check import is_anothers_check
from autotune.safety.paths import is_held, is_waiting, open_journals
from autotune.safety.scratch_folder import FILE, SCRATCH_PREFIX
from autotune.suggested import set_by_hand
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.stack import Mount, Stack
from autotune.system.sync import CHECKS


def find(array: Array, stack: Stack, known: Collection[str]) -> list[PreflightFinding]:
    """What to tidy up on an array. `known` are the scratch folders that a journal speaks for."""
    texts = [*bounds(array), *_scratch(stack, known)]
    return [PreflightFinding("warn", text) for text in texts]


def applied(array: Array, state_dir: Path) -> list[PreflightFinding]:
    """What is applied to stay, if anything is."""
    if not is_applied(array, state_dir):
        return []
    text = f"A profile is applied; `autotune restore {array.device}` undoes that."
    return [PreflightFinding("warn", text)]


def describe(path: Path, root: Path = Path("/")) -> tuple[str, list[str]]:
    """What to do about an open journal, in a sentence, and the scratch folders it speaks for."""
    try:
        journal = Journal.load(path)
        record = journal.record
        if is_waiting(path) and record.of_this_boot(root) and record.waits(root):
            text = f"{'; '.join(record.waits(root))} ({path})."
            if not is_held(path):
                text = (
                    f"What an earlier run on {record.device} left could not go back while a sync "
                    f"ran, and nobody waits for its end ({path}); run `autotune restore`."
                )
            return text, record.scratch
        if is_held(path):
            text = (
                f"The run of process {record.pid} on {record.device} is under way ({path}); "
                "wait until it has ended, or stop it."
            )
            return text, record.scratch
        action = record.action(root)
        ours = record.checking and record.is_same(action)
        ours = ours and not is_anothers_check(action.parent, record)
        checks = ours and sysfs.read_or(action, "idle") == "check"
        still = ", and its check of the array still runs" if checks else ""
        if ours and sysfs.read_or(action.parent / "sync_max", "max") != "max":
            still += ", up to a bound at which a rebuild would stand still too"
        text = f"An earlier run on {record.device} was not cleaned up ({path}){still}"
        return f"{text}; run `autotune restore`.", record.scratch
    except (AutotuneError, OSError):
        return f"An earlier run was not cleaned up ({path}); run `autotune restore`.", []


def abandoned(state_dir: Path, running: Collection[str], root: Path = Path("/")) -> list[str]:
    """What to do about journals that nobody holds, of arrays that do not run, a sentence each.
    `running` are the UUIDs of those that do."""
    told = []
    for path in open_journals(state_dir):
        # One that is gone has been put back meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if path.name.partition(".")[0] not in running and not is_held(path):
                told.append(describe(path, root)[0])
    return told


def prevents(path: Path, uuids: Collection[str]) -> bool:
    """Whether a journal keeps runs on these arrays from starting, or stays until somebody clears
    it. What goes on with another array ends by itself."""
    if path.name.partition(".")[0] in uuids:
        return True
    try:
        return not is_held(path)
    except FileNotFoundError:
        # It has been put back meanwhile.
        return False
    except (AutotuneError, OSError):
        return True


def bounds(array: Array) -> Iterator[str]:
    """Where the sync of an array would begin late or end early. While one runs, sync_min is that
    sync's own business."""
    if array.sync_action != "idle":
        bound = sysfs.read_or(array.md / "sync_max", "max")
        if bound != "max":
            # Nobody means to bound a recovery.
            unless = "unless a check in parts is at work, " if array.sync_action in CHECKS else ""
            yield (
                f"What runs on {array.device} ({array.sync_action}) goes no further than to sector "
                f"{bound} (sync_max); {unless}let it go on with "
                f"`{set_by_hand(array.md / 'sync_max', 'max')}`."
            )
        return
    for name, whole, does in (
        ("sync_min", "0", "starts at sector {} and skips what lies before it"),
        ("sync_max", "max", "stops at sector {} and waits there"),
    ):
        bound = sysfs.read_or(array.md / name, whole)
        if bound != whole:
            yield (
                f"The next check of {array.device} {does.format(bound)} ({name}), as an "
                "interrupted check leaves it; unless a check in parts (mdcheck) is to go on from "
                f"there, reset it with `{set_by_hand(array.md / name, whole)}`."
            )


def _candidates(mount: Mount) -> list[Path]:
    """None where a filesystem has given up, of which another finding tells."""
    try:
        return sorted(mount.mountpoint.glob(f"{SCRATCH_PREFIX}*"))
    except OSError:
        return []


def _scratch(stack: Stack, known: Collection[str]) -> Iterator[str]:
    seen: set[tuple[int, int]] = set()
    for mount in stack.mounts:
        for folder in _candidates(mount):
            with contextlib.suppress(OSError):
                status = folder.lstat()
                # A filesystem may be mounted in several places.
                place = (status.st_dev, status.st_ino)
                if place in seen or not _is_ours(folder, status):
                    continue
                seen.add(place)
                if str(folder) not in known:
                    name = shlex.quote(str(folder))
                    yield (
                        f"The scratch folder {folder} has no journal here; if no run is under way, "
                        f"remove it with `rm -f {name}/{FILE} && rmdir {name}`."
                    )


def _is_ours(folder: Path, status: os.stat_result) -> bool:
    """Whether it is just as a run makes one. Whoever may write there can give the name to another
    folder, even one of root's, for root to remove."""
    private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
    if not private or status.st_uid not in (0, os.geteuid()):
        return False
    return {entry.name for entry in folder.iterdir()} <= {FILE}
