"""Every knob on a real array, on raid6-hdd; `test_run.py` runs this there."""

import random
from pathlib import Path

from guest import Follower, knob_files

from autotune.knobs import ALL
from autotune.measure.workload import load_workload
from autotune.measure.write_budget import Written
from autotune.problem.setting import Setting
from autotune.safety.apply import apply
from autotune.tuning.prepare import Options, prepare
from autotune.tuning.session import session

SETTINGS = 20


def test_every_value_takes_effect_in_any_company_and_all_go_back(tmp_path: Path) -> None:
    before = knob_files()
    workload = load_workload("quick")
    options = Options("/dev/md0", workload, destructive="/dev/md0", knobs=ALL, ram_budget=64 << 20)
    preparation, rng = prepare(options), random.Random(7)
    assert {knob.name for knob in preparation.knobs} >= {"group_thread_cnt", "nr_requests"}
    took: list[Setting] = []
    with session(preparation, tmp_path, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        while len(took) < SETTINGS:
            setting = {name: rng.choice(values) for name, values in preparation.choices.items()}
            if not preparation.allowed(setting):
                continue
            took.append(apply(preparation.array, preparation.knobs, setting, bench.journal))
            assert took[-1] == setting
        assert knob_files() != before
    assert knob_files() == before
