"""Putting back what journals and records hold, one after the other, whatever fails."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.deferred_restore import put_back
from autotune.safety.journal import Journal
from autotune.safety.locks import Lockable, lock
from autotune.safety.outcome import Outcome
from autotune.safety.paths import applied_records, clear_if_torn, is_held, open_journals
from autotune.safety.restore import remove_kept_scratch

Outcomes = dict[Path, tuple[str, Outcome]]
"""What became of each journal, with the name of its array."""


@dataclass
class PutBack:
    """What came of several journals."""

    done: Outcomes = field(default_factory=dict)
    torn: list[Path] = field(default_factory=list)
    """Those that were cut short before anything was changed."""
    barred: list[str] = field(default_factory=list)
    """The UUIDs of arrays whose persisted values a journal has kept udev from."""
    failed: list[str] = field(default_factory=list)


def abandoned(state_dir: Path) -> list[Path]:
    """The journals that no process holds."""
    return [path for path in open_journals(state_dir) if not _is_busy(path)]


def _is_busy(path: Path) -> bool:
    try:
        return is_held(path)
    except (AutotuneError, OSError):
        # What is wrong with it is told when it is opened; or somebody has just cleared it.
        return not path.exists()


def put_back_each(paths: Iterable[Path], applied: Mapping[Path, Lockable]) -> PutBack:
    """Put back what these journals hold. `applied`: those of them that are records of what is
    applied, with what has to be locked. Never raises for one of them."""
    came = PutBack()
    for path in paths:
        try:
            # What is applied got its name as a whole: damaged, it is told.
            if path not in applied and clear_if_torn(path):
                came.torn.append(path)
                came.barred.append(path.stem)
                continue
            below = lock(applied[path], undoes=True) if path in applied else None
            with below or contextlib.nullcontext():
                record, outcome = put_back(path)
            came.done[path] = record.device, outcome
            if path not in applied and not path.exists():
                came.barred.append(record.uuid)
        except FileNotFoundError:
            # Whoever held it has put everything back meanwhile.
            if path.is_symlink():
                came.failed.append(f"{path} is a link that leads nowhere; remove it")
        except (AutotuneError, OSError) as error:
            came.failed.append(str(error))
    return came


def remove_kept_scratch_of_each(state_dir: Path) -> Outcomes:
    """Remove the scratch folders that records of what is applied still name, if no process of
    autotune is there to do so."""
    done: Outcomes = {}
    for path in applied_records(state_dir):
        # What is wrong with a record is told by who needs it.
        with contextlib.suppress(AutotuneError, OSError):
            if Journal.load(path).record.scratch:
                journal = Journal.claimed(path)
                done[path] = journal.record.device, remove_kept_scratch(journal)
                journal.release()
    return done
