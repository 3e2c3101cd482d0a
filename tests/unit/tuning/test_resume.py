"""A run that was cut goes on with what it has, once the originals are measured again; another run
is refused."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from fake_run import Machine

from autotune.errors import RefusalError, StoppedError
from autotune.problem.ceilings import Ceiling
from autotune.results.proof import proofs
from autotune.stats.sequential import ERRORS
from autotune.store.database import Store
from autotune.tuning import resume, search


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("strategy", ["random", "recipe"])
@pytest.mark.parametrize("stop_at", [0, 1, 4])
def test_a_run_that_was_cut_in_its_baseline_ends_as_if_it_had_not_been(
    machine: Machine, strategy: str, stop_at: int
) -> None:
    whole = machine.run(strategy)
    expected = machine.stored(1)
    with pytest.raises(StoppedError):
        machine.run(strategy, stop_at)
    before = machine.stored(2)
    again = machine.run(strategy, again=True)
    assert machine.stored(2) == expected
    assert machine.stored(2)[: len(before)] == before
    assert (again.winner, again.keep) == (whole.winner, whole.keep)
    assert again.trials == whole.trials
    assert again.unsupported == whole.unsupported


@pytest.mark.parametrize("strategy", ["random", "recipe"])
@pytest.mark.parametrize("stop_at", [7, 12, 16])
def test_a_run_that_goes_on_measures_the_originals_first(
    machine: Machine, strategy: str, stop_at: int
) -> None:
    """What has drifted since is not to be taken for what a setting does."""
    whole = machine.run(strategy)
    with pytest.raises(StoppedError):
        machine.run(strategy, stop_at)
    before = machine.stored(2)
    again = machine.run(strategy, again=True)
    after = machine.stored(2)
    assert after[: len(before)] == before
    assert after[len(before)][1] == "baseline"
    assert (again.winner["stripe_cache_size"], again.keep) == (
        whole.winner["stripe_cache_size"],
        whole.keep,
    )
    assert again.unsupported == whole.unsupported


def test_no_stored_trial_is_measured_twice(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 13)
    kept = {(number, phase) for number, *_, phases in machine.stored(1) for phase in phases}
    measured = machine.measured
    machine.run("random", again=True)
    twice = set(measured) & set(machine.measured)
    assert not twice & kept
    # Only the trial that was cut, if it had got somewhere.
    assert {number for number, _ in twice} <= {len({n for n, _ in kept}) + 1}


def test_a_baseline_that_came_back_and_was_cut_is_measured_again(machine: Machine) -> None:
    machine.run("random")
    stored = machine.stored(1)
    third = [number for number, role, *_ in stored if role == "baseline"][2]
    stop_at = sum(len(phases) for number, *_, phases in stored if number < third) + 1
    with pytest.raises(StoppedError):
        machine.run("random", stop_at)
    machine.run("random", again=True)
    assert machine.stored(2) == stored


def test_a_confirmation_that_was_cut_is_measured_from_its_start(machine: Machine) -> None:
    machine.run("recipe")
    roles = [role for _, role, *_ in machine.stored(1)]
    inside = itertools.accumulate(len(phases) for *_, phases in machine.stored(1))
    stop_at = list(inside)[-2]
    with pytest.raises(StoppedError):
        machine.run("recipe", stop_at)
    result = machine.run("recipe", again=True)
    again = [role for _, role, *_ in machine.stored(2)]
    begun, anew = again[: len(roles) - 1], again[len(roles) - 1 :]
    assert begun == roles[:-1]
    # How many pairs it takes depends on what is known by then.
    assert anew[:3] == ["baseline", "confirm-winner", "confirm-baseline"]
    assert len(anew) % 2 == 1
    assert result.keep
    records = Store(machine.state).trials(2)
    newest = proofs(records)[-1]
    # What was measured before the cut is another proof.
    assert newest.trials[0] == len(begun) + 2


def test_the_proofs_before_a_cut_use_up_their_share_of_the_errors(machine: Machine) -> None:
    machine.run("recipe")
    stop_at = sum(len(phases) for *_, phases in machine.stored(1)) - 1
    with pytest.raises(StoppedError):
        machine.run("recipe", stop_at)
    records = Store(machine.state).trials(2)
    assert len(proofs(records)) == 1
    shares: list[tuple[float, ...]] = []
    with pytest.MonkeyPatch.context() as patch:
        real = search.Search.__init__

        def init(self: search.Search, *words: Any) -> None:
            real(self, *words)
            shares.append(self.errors)

        patch.setattr(search.Search, "__init__", init)
        machine.run("recipe", again=True)
    assert shares == [ERRORS[1:]]


@pytest.mark.parametrize(
    ("strategy", "changes", "words"),
    [
        ("random", {"seed": 4}, "the seed was 0 and is 4 now"),
        ("random", {"trials": 10}, "the number of trials was 9 and is 10 now"),
        ("random", {"ceilings": (Ceiling(None, 5e7, None),)}, "the ceilings changed"),
        ("grid", {}, "the strategy was random and is grid now"),
    ],
)
def test_other_options_are_refused_with_what_differs(
    machine: Machine, strategy: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    with pytest.raises(RefusalError, match=words):
        machine.resume(strategy, **changes)


def test_settings_that_were_changed_since_are_refused(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    (machine.array.md / "stripe_cache_size").write_text("512\n")
    with pytest.raises(RefusalError, match="stripe_cache_size was 256 when it started and is 512"):
        machine.resume("random")


def test_another_array_or_kernel_is_refused(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    with pytest.raises(RefusalError, match="kernel changed"):
        machine.resume("random", fingerprint="other")
    with pytest.raises(RefusalError, match="nothing to resume"):
        machine.resume("random", uuid="another array")


def test_more_time_may_be_given(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    number, trials_done = machine.resume("random", time_s=9999.0)
    assert (number, len(trials_done)) == (1, 2)


def test_a_run_that_ended_is_not_resumed_and_a_killed_one_is_hinted_at(machine: Machine) -> None:
    machine.run("random")
    store = Store(machine.state)
    assert resume.unfinished(store.runs("u")) is None
    assert resume.interrupted(store.runs("u")) is None
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    # As after `kill -9`: nobody noted the end.
    cut = resume.interrupted(store.runs("u"))
    assert cut is not None
    assert (cut.id, cut.state) == (2, "running")


def test_reopening_forgets_the_end(machine: Machine) -> None:
    store = Store(machine.state)
    number = store.start_run("u", "/dev/md0", "print", {})
    store.finish_run(number, "interrupted", "Stopped by SIGINT")
    store.reopen_run(number)
    again = store.run(number)
    assert (again.state, again.outcome, again.ended) == ("running", "", None)
