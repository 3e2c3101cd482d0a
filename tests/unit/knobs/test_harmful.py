"""Values that do harm: refused everywhere alike, and no value of ours is."""

from importlib import resources
from pathlib import Path

import fake_sysfs
import pytest
import some_profile

from autotune.deploy import persist
from autotune.deploy.catalogue import parse_starting_point
from autotune.deploy.rescale import plan, plan_values
from autotune.errors import RefusalError, UsageError
from autotune.export import FORMATS
from autotune.knobs import ALL, for_array, harmful, read_setting
from autotune.knobs.profile_file import load_profile, parse_profile
from autotune.system.array import Array, find_array

GIB = 1 << 30
TWO_TB_KIB = 2_000_000_000


@pytest.fixture
def array(tmp_path: Path) -> Array:
    machine = fake_sysfs.raid6(tmp_path)
    (tmp_path / "etc/udev").mkdir(parents=True)
    machine.put("sys/block/md0/md/component_size", str(TWO_TB_KIB))
    return find_array("md0", tmp_path)


HARMFUL: list[dict[str, int | str]] = [
    {"sync_speed_min": 1, "sync_speed_max": 1},
    {"sync_speed_min": 1},
    {"sync_speed_min": 2**31 - 1, "sync_speed_max": 2**31 - 1},
    {"nr_requests": 4},
    {"max_sectors_kb": 4},
    {"read_ahead_kb": 1 << 20},
    {"wbt_lat_usec": 1},
    {"stripe_cache_size": 17},
    {"group_thread_cnt": 8192},
    {"safe_mode_delay": 0},
    {"safe_mode_delay": 4_000_000},
    {"fifo_batch": 2_000_000},
    {"read_expire": 10_000_000},
]


@pytest.mark.parametrize("knobs", HARMFUL)
def test_a_harmful_value_is_refused_wherever_it_would_get_in(
    array: Array, knobs: dict[str, int | str]
) -> None:
    theirs = some_profile.profile(knobs, chunk_kib=64)
    assert harmful.judge_on(array, knobs).refusals
    assert plan(theirs, array, GIB, None).refusals
    assert plan_values(knobs, array, GIB).refusals
    with pytest.raises((RefusalError, UsageError)):
        persist.check(array, theirs)
    for name in FORMATS:
        with pytest.raises(UsageError, match="would do harm"):
            FORMATS[name](theirs, array.uuid)


def test_a_rebuild_of_months_is_refused_with_the_days_it_takes(array: Array) -> None:
    (text,) = harmful.judge_on(array, {"sync_speed_max": 500}).refusals
    assert "at least 46 days" in text
    judged = harmful.judge_on(array, {"sync_speed_max": 1000})
    assert judged.refusals == ()
    assert "is low for such members" in judged.warnings[0]
    assert harmful.judge_on(array, {"sync_speed_max": 200_000}) == harmful.Judgement()


def test_larger_members_need_a_faster_sync(array: Array) -> None:
    speeds = (1000, 5000, 10_000)
    assert harmful.bearable(array, "sync_speed_max", speeds) == speeds
    (array.md / "component_size").write_text(f"{10 * TWO_TB_KIB}\n")
    assert harmful.bearable(array, "sync_speed_max", speeds) == speeds[2:]
    assert plan_values({"sync_speed_max": 5000}, array, GIB).refusals


def test_what_the_array_has_already_is_told_and_not_refused(array: Array) -> None:
    (array.md / "sync_speed_max").write_text("1 (local)\n")
    judged = harmful.judge_on(array, {"sync_speed_max": 1})
    assert judged.refusals == ()
    assert "days" in judged.warnings[0]


def test_a_strangers_profile_has_the_usual_ram_and_our_own_what_it_was_made_for(
    array: Array,
) -> None:
    knobs: dict[str, int | str] = {"stripe_cache_size": 32768}
    theirs = some_profile.profile(knobs).model_copy(update={"ram_budget_bytes": 1 << 60})
    usual = harmful.ram_budget_for(theirs, array)
    assert usual == 8388608 * 1024 // 20
    where = theirs.proven_on.model_copy(update={"uuid": array.uuid})
    own = theirs.model_copy(update={"proven_on": where})
    assert harmful.ram_budget_for(own, array) == 1 << 60
    assert "RAM" in harmful.judge_on(array, knobs, usual).refusals[0]
    assert not harmful.judge_on(array, knobs, 1 << 60).refusals


def test_nothing_that_is_shipped_or_that_a_run_tries_does_harm(array: Array) -> None:
    folder = resources.files("autotune.profiles.starting")
    for file in folder.iterdir():
        if file.name.endswith(".toml"):
            point = parse_starting_point(file.read_text(), file.name)
            assert harmful.judge(point.values).refusals == (), file.name
    example = load_profile(Path(__file__).parents[3] / "examples/profile.json")
    assert harmful.judge(example.knobs).refusals == ()
    for knob in for_array(array, ALL):
        if knob.name != "sync_speed_max":
            choices = knob.choices(array, 1 << 40)
            assert harmful.bearable(array, knob.name, choices) == choices, knob.name
    now = read_setting(array, for_array(array, ALL))
    assert harmful.judge(now).refusals == ()


def test_what_does_not_say_that_it_was_proven_is_not() -> None:
    text = some_profile.profile().model_dump_json(exclude={"evidence": {"confirmed"}})
    assert not parse_profile(text, "p").evidence.confirmed


def test_a_depth_that_starves_a_rebuild_is_warned_of() -> None:
    assert "hardly moves" in harmful.judge({"sync_io_depth": 1}).warnings[0]
    assert harmful.judge({"sync_io_depth": 8}) == harmful.judge({})
