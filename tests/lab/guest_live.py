"""A real recovery against the kernel's own memory of its speed, on raid5-hdd; `test_run.py` runs
this there."""

from pathlib import Path

from guest import Follower
from guest_rebuild import SLOWDOWN, Witness, options, recover, settled_knobs

from autotune.measure.phase import measure
from autotune.measure.write_budget import Written
from autotune.safety.apply import apply
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

SLOWDOWN_FACTOR = 8
LIMIT_KIB = 1200


def test_a_limit_shows_in_the_next_figure_and_is_forgotten_when_it_is_lifted(
    tmp_path: Path,
) -> None:
    recover(slowdown=SLOWDOWN_FACTOR)
    preparation, knobs = prepare(options(), tmp_path), settled_knobs()
    (phase,) = preparation.phases
    free = preparation.baseline["sync_speed_max"]
    rates = []
    with (
        Witness() as witness,
        session(preparation, tmp_path, Follower(), Written()) as (bench, watch),
    ):
        watch.expect(None)
        for speed in (LIMIT_KIB, free):
            setting = {**preparation.baseline, "sync_speed_max": speed}
            apply(preparation.array, preparation.knobs, setting, bench.journal)
            rates.append(measure(phase, bench, 1).figures["resync.throughput"].value / 1024)
    print("KiB/s:", *map(round, rates))
    assert 0.6 < rates[0] / LIMIT_KIB < 1.3
    assert rates[1] > 1.5 * rates[0]
    assert witness.actions == {"recover"}
    assert witness.positions == sorted(witness.positions)
    assert settled_knobs() == knobs
    SLOWDOWN.write_text("1\n")
