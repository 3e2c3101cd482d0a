"""Arrays that nobody checks, because the system's own checks were turned off for those of autotune.
They may have come later, or their `check_every` may have gone."""

from datetime import UTC, datetime
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.preflight.check_schedule import is_masked
from autotune.service import CONFIG
from autotune.service.config import fault
from autotune.service.install import FOLDER, checked, has_checks, is_enabled, timer
from autotune.service.take_over import RECORD, found
from autotune.system.array import list_arrays


def refuse_if_unchecked(root: Path = Path("/")) -> None:
    """Raise RefusalError if an array would be checked by nobody, the system's checks being off."""
    ours = checked(root).values()
    nobodys = [a for a in list_arrays(root) if has_checks(a) and a.name not in ours]
    back = "; `autotune service remove` turns the system's checks on" if are_off(root) else ""
    if firmware := [a.device for a in nobodys if a.metadata.startswith("external")]:
        raise RefusalError(
            f"autotune cannot check {' and '.join(firmware)} (firmware RAID), so the system's own "
            f"checks are needed{back or '; leave out --take-over-checks'}."
        )
    left = [a.device for a in nobodys]
    if left:
        raise RefusalError(
            f"Nobody would check {' and '.join(left)} then; set check_every in {CONFIG}, if "
            f"`autotune check` takes them{back}."
        )


def are_off(root: Path = Path("/")) -> bool:
    """Whether the system's own checks were turned off for ours, and still are."""
    return (root / RECORD).exists() and not found(root)


def unchecked(root: Path = Path("/")) -> dict[str, str]:
    """A sentence for each array here that nobody checks, by device."""
    if not are_off(root):
        return {}
    try:
        wanted = {name: unit for unit, name in checked(root).items()}
    except UsageError:
        # No check of ours starts with it, so this is true of every array.
        why = fault(root / CONFIG.relative_to("/"))
        found = [a.device for a in list_arrays(root) if has_checks(a)] if why else []
        return {device: f"Nobody checks {device}: {why}" for device in found}
    texts = {}
    for array in list_arrays(root):
        unit = wanted.get(array.name)
        if not has_checks(array) or (unit and enabled_since(unit, root)):
            continue
        if unit and is_masked(root, timer(unit)):
            lacks = f"run `systemctl unmask {timer(unit)}`, and then `autotune service install`"
        elif unit:
            lacks = "run `autotune service install`, which gives it a timer"
        else:
            lacks = (
                f"set check_every for it in {CONFIG} and run `autotune service install`, or turn "
                "the system's on with `autotune service remove`"
            )
        texts[array.device] = (
            f"Nobody checks {array.device}, since the system's own checks are turned off for those "
            f"of autotune; {lacks}."
        )
    return texts


def kept_from_work(root: Path = Path("/")) -> list[str]:
    """Why the service starts nothing though it is enabled, in a sentence; none if it does."""
    why = fault(root / CONFIG.relative_to("/")) if is_enabled(root) else None
    starts = "The service starts no check, guard or re-tuning until its configuration is corrected"
    return [f"{starts}: {why}"] if why else []


def enabled_since(unit: str, root: Path) -> datetime | None:
    """When the timer of a check was enabled; None if it is not, or is masked."""
    links = [folder / timer(unit) for folder in (root / FOLDER).glob("*.wants")]
    times = [link.lstat().st_mtime for link in links if link.is_symlink()]
    if not times or is_masked(root, timer(unit)):
        return None
    return datetime.fromtimestamp(min(times), UTC)
