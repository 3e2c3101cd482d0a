"""A real recovery against the kernel's own memory of its speed, on raid5-hdd; `test_run.py` runs
this there."""

from pathlib import Path

from guest import Follower, read
from guest_rebuild import MD, SLOWDOWN, Witness, options, recover, settled_knobs

from autotune.apply import apply
from autotune.measure import measure
from autotune.prepare import prepare
from autotune.session import session
from autotune.written import Written

SLOWDOWN_FACTOR = 6


def test_a_new_limit_shows_in_the_next_figure_and_the_old_one_is_forgotten(tmp_path: Path) -> None:
    recover(slowdown=SLOWDOWN_FACTOR)
    preparation, knobs = prepare(options()), settled_knobs()
    (phase,) = preparation.phases
    rates = []
    with (
        Witness() as witness,
        session(preparation, tmp_path, Follower(), Written()) as (bench, watch),
    ):
        watch.expect(None)
        free = measure(phase, bench, 0).figures["resync.throughput"].value
        limit_kib = int(free / 1024 / 3)
        assert limit_kib > int(read(MD / "sync_speed_min").split()[0])
        for speed in (limit_kib, preparation.baseline["sync_speed_max"]):
            setting = {**preparation.baseline, "sync_speed_max": speed}
            apply(preparation.array, preparation.knobs, setting, bench.journal)
            rates.append(measure(phase, bench, 1).figures["resync.throughput"].value)
    print(
        f"free {free:.3g}, limited to {limit_kib * 1024:.3g}: {rates[0]:.3g}, then {rates[1]:.3g}"
    )
    assert 0.6 < rates[0] / (limit_kib * 1024) < 1.3
    assert rates[1] > 1.5 * rates[0]
    assert witness.actions == {"recover"}
    assert witness.positions == sorted(witness.positions)
    assert settled_knobs() == knobs
    SLOWDOWN.write_text("1\n")
