"""Collects what the metrics say about the arrays here. Changes nothing."""

from pathlib import Path

from autotune.deploy.status import status
from autotune.errors import AutotuneError
from autotune.quantities import NS_PER_S
from autotune.service import history
from autotune.service.metrics import ArrayMetrics
from autotune.stats.verdict import Conclusion
from autotune.system.array import Array


def observe(array: Array, state_dir: Path) -> ArrayMetrics:
    """The profile in force, and what the newest pass measured. Where what is remembered cannot be
    read, a pass fails."""
    now = status(array, state_dir)
    profile = now.active.profile.name if now.active else ""
    good = now.active is not None and now.good
    try:
        memory = history.load(state_dir, array.uuid)
    except AutotuneError:
        return ArrayMetrics(array.device, array.uuid, profile, good, failed=True)
    measured = [record for record in memory.passes if record.gain is not None]
    failed = bool(memory.passes) and memory.passes[-1].outcome == "failed"
    if not measured:
        return ArrayMetrics(array.device, array.uuid, profile, good, failed=failed)
    last = measured[-1]
    ratio, low, high = last.gain or (1.0, 1.0, 1.0)
    verdict = Conclusion.BETTER if low > 1 else Conclusion.WORSE if high < 1 else Conclusion.SAME
    p99 = {name: pair[0] / NS_PER_S for name, pair in memory.latest.items() if name.endswith("p99")}
    ceilings = {name: ceiling / NS_PER_S for name, ceiling in memory.ceilings.items()}
    return ArrayMetrics(
        array.device,
        array.uuid,
        profile,
        good,
        last.at.timestamp(),
        ratio,
        (low, high),
        verdict.value,
        last.drift,
        tuple(p99.items()),
        tuple(ceilings.items()),
        failed,
    )
