"""How long a rebuild of a disk would take, from what the workload's check showed. Pure."""

from collections.abc import Iterable

from autotune.design.workspace import Workspace
from autotune.measure.workload import Phase
from autotune.problem.objective import Figures
from autotune.sync_forecast.platter import assumed, flat
from autotune.system.blockdev import Media


def rebuild_s(figures: Figures, phases: Iterable[Phase], workspace: Workspace) -> float | None:
    """Seconds for the smallest disk at the speed of the check; a hard disk is taken to be half as
    fast at its end. None if the workload has no check."""
    checked = next((f"{phase.name}.throughput" for phase in phases if phase.check), "")
    if checked not in figures:
        return None
    kib_s = figures[checked].value / 1024
    platter = assumed(kib_s) if workspace.media is Media.HDD else flat(kib_s)
    return platter.seconds(workspace.each_bytes / 1024)
