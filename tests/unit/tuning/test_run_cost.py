"""What a run will take, said before it."""

import dataclasses
import io
from pathlib import Path

import pytest
from fake_run import Machine
from rich.console import Console

from autotune.problem.setting import Setting
from autotune.quantities import show_bytes
from autotune.report.plan import plan_document, print_plan
from autotune.report.run_cost import write_lines
from autotune.system.array import Media
from autotune.tuning.preparation import Preparation
from autotune.tuning.run_cost import run_cost


@pytest.fixture
def preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preparation:
    preparation = Machine(tmp_path, monkeypatch).preparation("recipe")
    return dataclasses.replace(preparation, scratch=tmp_path)


def _of(preparation: Preparation, media: Media, level: str) -> Preparation:
    members = tuple(dataclasses.replace(m, media=media) for m in preparation.array.members)
    array = dataclasses.replace(preparation.array, level=level, members=members)
    return dataclasses.replace(preparation, array=array)


def test_a_mirror_writes_all_to_each_member_and_parity_shares_it(preparation: Preparation) -> None:
    mirror = run_cost(_of(preparation, Media.SSD, "raid1"))
    parity = run_cost(_of(preparation, Media.SSD, "raid6"))
    members = preparation.array.raid_disks
    assert mirror.member_bytes == mirror.written_bytes > 0
    assert parity.member_bytes == pytest.approx(parity.written_bytes / (members - 2), rel=1e-6)
    assert parity.written_bytes > mirror.written_bytes


def test_a_write_journal_gets_everything(preparation: Preparation) -> None:
    array = preparation.array
    member = dataclasses.replace(array.members[-1], name="sdj", state="journal,write_mostly")
    with_one = dataclasses.replace(array, members=(*array.members, member))
    expected = run_cost(preparation)
    lines = [*write_lines(dataclasses.replace(preparation, array=with_one), expected)]
    most = show_bytes(expected.member_bytes * array.raid_disks)
    assert f"The write journal sdj gets all of it, parity too: up to {most}." in lines
    assert not any("write journal" in line for line in write_lines(preparation, expected))


def test_more_time_or_faster_disks_write_more_and_the_budget_limits_it(
    preparation: Preparation,
) -> None:
    def written(**options: object) -> int:
        changed = dataclasses.replace(preparation.options, **options)  # type: ignore[arg-type]
        return run_cost(dataclasses.replace(preparation, options=changed)).written_bytes

    assert written(time_s=600.0, trials=500) < written(time_s=6000.0, trials=500)
    assert written(write_budget=1 << 20) == 1 << 20
    slow, fast = (run_cost(_of(preparation, m, "raid6")) for m in (Media.HDD, Media.NVME))
    assert slow.written_bytes < fast.written_bytes


def test_it_takes_no_longer_than_it_may(preparation: Preparation) -> None:
    expected = run_cost(preparation)
    assert expected.trials * expected.trial_s <= expected.seconds <= preparation.options.time_s


def _shown(preparation: Preparation, verbose: bool) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_plan(console, preparation, verbose)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_command_lines_of_fio_are_for_those_who_ask(preparation: Preparation) -> None:
    text = _shown(preparation, False)
    assert "--readonly" not in text
    assert "Requests of others then take longer" in text
    assert "--readonly" in _shown(preparation, True)
    assert "--readonly" in plan_document(preparation)["phases"]["read"]["fio"]


def test_writes_that_are_not_measured_are_told_with_what_to_do(preparation: Preparation) -> None:
    left = tuple(phase for phase in preparation.phases if phase.writes)
    rest = tuple(phase for phase in preparation.phases if not phase.writes)
    bare = dataclasses.replace(preparation, phases=rest, left_out=left, scratch=None)
    (said,) = bare.said_first
    assert said.startswith("Not measured: write, since no filesystem on the array is mounted.")
    assert "--destructive /dev/md0" in said
    assert said in _shown(bare, False)
    assert preparation.said_first == ()


def test_the_long_load_is_announced_where_the_stripe_cache_is_tuned(
    preparation: Preparation,
) -> None:
    assert run_cost(preparation).long_s == preparation.options.workload.long_seconds > 0
    assert "The longest load" in _shown(preparation, False)
    knobs = tuple(knob for knob in preparation.knobs if knob.name != "stripe_cache_size")
    baseline: Setting = {knob.name: preparation.baseline[knob.name] for knob in knobs}
    without = dataclasses.replace(preparation, knobs=knobs, baseline=baseline)
    assert run_cost(without).long_s == 0
