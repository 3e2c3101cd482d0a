"""The write budget: counted, held, and enough of it left to prove a winner."""

import dataclasses
import io
import itertools
import json
import shutil
from pathlib import Path

import pytest
from fake_run import PHASE_WRITES, Machine
from rich.console import Console

from autotune.errors import RefusalError, StoppedError
from autotune.measure.fio_command import Job, Target, command
from autotune.measure.phase import Bench, measure
from autotune.measure.scratch import scratch_file
from autotune.measure.workload import Load, Phase, Probe
from autotune.measure.write_budget import Written, shares
from autotune.report.plan import plan_document, print_plan
from autotune.safety.journal import Journal
from autotune.store.database import Store

TARGET = Target(Path("/dev/md0"), 1 << 30)
TRIAL_PHASES = 3


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_without_a_budget_nothing_is_limited() -> None:
    written = Written()
    written.add(1 << 60)
    assert written.left is None
    written.check_scratch(1 << 60)


def test_the_search_ends_in_time_to_prove_its_winner(machine: Machine) -> None:
    budget = 12 * PHASE_WRITES
    result = machine.run("recipe", write_budget=budget)
    roles = [role for _, role, *_ in machine.stored(1)]
    # One pair or more, in turn.
    proof = [role for role in roles if role.startswith("confirm")]
    assert proof[:2] == ["confirm-winner", "confirm-baseline"]
    assert result.keep
    assert 0 < roles.count("search") < machine.run("recipe").trials - 6
    assert result.bytes_written <= budget
    assert result.write_budget == budget


def test_a_budget_for_the_baseline_alone_says_so(machine: Machine) -> None:
    with pytest.raises(RefusalError, match=r"measured as it is, .* allow more \(--write-budget\)"):
        machine.run("recipe", write_budget=3 * PHASE_WRITES)
    assert len(machine.stored(1)) == 1


def test_a_budget_that_is_used_up_ends_the_run(machine: Machine) -> None:
    with pytest.raises(StoppedError, match=r"0 B of the write budget of 512 KiB are written"):
        machine.run("recipe", write_budget=PHASE_WRITES // 2)


def test_what_was_written_before_a_cut_counts(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("recipe", 5, write_budget=20 * PHASE_WRITES)
    before = Store(machine.state).run(1).problem["written_bytes"]
    # The warm-up's, and that of two trials.
    assert before == 3 * PHASE_WRITES
    result = machine.run("recipe", again=True, write_budget=21 * PHASE_WRITES)
    again = sum("write" in phases for *_, phases in machine.stored(1)) * PHASE_WRITES
    # The trial that was cut, too: it is measured again, after another warm-up.
    assert result.bytes_written == again + before


def test_a_budget_is_not_left_out_of_a_run_that_goes_on(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("recipe", 5, write_budget=20 * PHASE_WRITES)
    with pytest.raises(RefusalError, match="may change but not be left out"):
        machine.resume("recipe")


def test_the_plan_shows_the_budget(machine: Machine, tmp_path: Path) -> None:
    preparation = machine.preparation("recipe", write_budget=50 << 30)
    preparation = dataclasses.replace(preparation, scratch=tmp_path)
    assert plan_document(preparation)["write_budget_bytes"] == 50 << 30
    console = Console(record=True, file=io.StringIO())
    print_plan(console, preparation)
    assert "Write budget: 50 GiB, of which" in console.export_text()


def test_what_is_about_to_be_written_counts_if_nobody_lives_to_count_it() -> None:
    stored: list[int] = []
    written = Written(None, 5, stored.append)
    written.expect(10)
    written.add(3)
    assert stored == [15, 8]


LOADS = (
    Load(rw="write", block_kib=1024),
    Load(rw="write", block_kib=64, streams=4),
    Load(rw="randrw", block_kib=4, read_percent=70, depth=8),
    Load(rw="randrw", block_kib=4, read_percent=100),
)
PROBES = (None, *Probe(rate_iops=50, read_percent=50).parts)


@pytest.mark.parametrize("limit", [0, 5000, 1 << 20, (1 << 30) + 1])
@pytest.mark.parametrize(("load", "probe"), list(itertools.product(LOADS, PROBES)))
def test_shares_together_never_pass_the_limit(load: Load, probe: Probe | None, limit: int) -> None:
    jobs = [Job("load", load, TARGET)] + ([Job("probe", probe, TARGET)] if probe else [])
    most = shares(jobs, limit, 14.0)
    assert set(most) == {job.name for job in jobs if job.does.writes}
    mean = 0.0
    for job in jobs:
        if job.name in most:
            mixed = not isinstance(job.does, Load) or job.does.rw == "randrw"
            share = 1 - job.does.read_percent / 100 if mixed else 1.0
            mean += most[job.name] * job.processes * share
            assert most[job.name] % (job.does.block_kib * 1024) == 0
    assert mean <= limit
    if limit > 1 << 29 and load.read_percent < 100:
        assert mean > limit * 0.8


def test_fio_itself_ends_a_job_that_has_written_its_share() -> None:
    jobs = [Job("load", LOADS[0], TARGET), Job("probe", Probe(rate_iops=50), TARGET)]
    words = command(jobs, 10, 1, {"load": 1 << 20})
    load, probe = words[: words.index("--name=probe")], words[words.index("--name=probe") :]
    assert {"--io_size=1048576", "--time_based=0"} <= set(load)
    assert "--time_based=1" in probe
    assert not any(word.startswith("--io_size") for word in probe)


def bench(tmp_path: Path, written: Written) -> Bench:
    path = tmp_path / "scratch"
    with path.open("wb") as file:
        file.truncate(16 << 20)
    head = {"uuid": "u", "device": "md0", "boot": "b", "pid": 1, "originals": {}}
    (tmp_path / "journal").write_text(json.dumps(head) + "\n")
    target, journal = Target(path, 16 << 20), Journal.load(tmp_path / "journal")
    nothing = (lambda: None, lambda: None, lambda _p, _s: None, None)
    return Bench("md0", target, target, journal, *nothing, written)


@pytest.mark.skipif(not shutil.which("fio"), reason="needs fio")
@pytest.mark.parametrize("streams", [1, 3])
def test_a_real_fio_stays_within_the_budget(tmp_path: Path, streams: int) -> None:
    load = Load(rw="write", block_kib=64, streams=streams, buffered=True)
    phase = Phase(name="write", weight=1, load=load)
    written = Written(40 << 20)
    with pytest.raises(StoppedError, match="write budget"):
        measure(phase, bench(tmp_path, written), 1)
    assert 39 << 20 < written.total <= 40 << 20
    # Too little for a single request: fio does not even start.
    written = Written(1000)
    with pytest.raises(StoppedError):
        measure(phase, bench(tmp_path, written), 1)
    assert written.total == 0


def test_a_budget_below_the_scratch_file_is_refused_before_it_is_made(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    journal = bench(tmp_path, Written()).journal
    small = Written(8 << 20, 5 << 20)
    with (
        pytest.raises(RefusalError, match=r"of which 5\.0 MiB are used.*--write-budget"),
        scratch_file(tmp_path, 4 << 20, "", journal, lambda _share: None, small, print),
    ):
        pass
    enough = Written(8 << 20)
    how = (4 << 20, "", journal, lambda _share: None, enough, print)
    with scratch_file(tmp_path, *how) as file:
        assert file.path.stat().st_size == enough.total == 4 << 20
    assert not list(tmp_path.glob(".autotune-*"))
