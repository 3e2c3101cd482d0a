"""What a pass of re-tuning leaves and tells if it is cut, on an array that is made up."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autotune.deploy.persisted import profile_path
from autotune.errors import AutotuneError, InUseError, NotNowError, RefusalError, SignalledError
from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.service import history, one_pass
from autotune.service.config import Config
from autotune.service.one_pass import Report
from autotune.service.policy import ComparedInTurn
from autotune.stats.verdict import judge
from autotune.system.array import Array

UUID = "11111111:22222222:33333333:44444444"
ARRAY = SimpleNamespace(device="/dev/md0", uuid=UUID)
ARRAY.now = lambda: ARRAY
TRIED = SimpleNamespace(name="tried", knobs={"stripe_cache_size": 4096})
PROVEN = SimpleNamespace(name="proven", knobs={"stripe_cache_size": 1024})
FIGURES = (Figure("write.throughput", "write", "throughput", 1.0),)


class Slower:
    """A profile that is slower than the original settings, which are put back; the search that
    follows does not end."""

    figures = FIGURES
    fingerprint = "as ever"
    trials, seconds, bytes_written, adopted = 2, 60.0, 0, None
    cut: Exception

    def __init__(self, *_: object) -> None:
        self.incumbent: Setting = {"stripe_cache_size": 4096}

    def against_originals(self) -> ComparedInTurn:
        before, after = ({"write.throughput": Estimate(rate, 0.02)} for rate in (50e6, 100e6))
        return ComparedInTurn(judge(FIGURES, [after] * 2, [before] * 2), before, after)

    def is_original(self, setting: Setting) -> bool:
        return setting == {"stripe_cache_size": 256}

    def back_to_originals(self) -> None:
        self.incumbent = {"stripe_cache_size": 256}

    def tune(self) -> Setting | None:
        raise self.cut


@pytest.fixture
def in_force() -> list[SimpleNamespace]:
    """Applied and persisted, as by `apply --persist`."""
    return [SimpleNamespace(how=how, profile=TRIED) for how in ("applied", "persisted")]


@pytest.fixture
def persisted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The persisted profile's file."""
    monkeypatch.setattr(ARRAY, "root", tmp_path_factory.mktemp("root"), raising=False)
    path = profile_path(UUID, ARRAY.root)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    return path


@pytest.fixture
def told(
    in_force: list[SimpleNamespace], persisted: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """What is notified, and what is not persisted any more."""
    assert persisted.exists()
    said: list[str] = []
    monkeypatch.setattr(one_pass, "ManagedArray", Slower)
    monkeypatch.setattr(one_pass, "active", lambda *_: in_force)
    monkeypatch.setattr(one_pass, "_not_now", lambda *_: "")
    monkeypatch.setattr(one_pass, "notify", lambda event, *_: said.append(event))
    monkeypatch.setattr(one_pass.persist, "unpersist", lambda *_: said.append("unpersisted"))
    monkeypatch.setattr(one_pass.udevd, "tell_udev", lambda *_: None)
    return said


def retune(state: Path, cut: Exception) -> Report:
    Slower.cut = cut
    reporter = cast(Any, SimpleNamespace(notice=print))
    return one_pass.retune(cast(Array, ARRAY), Config(), state, reporter)


REVERTED = ["unpersisted", "reverted"]


def test_a_check_of_the_machine_that_comes_soon_is_no_failure(
    tmp_path: Path, told: list[str]
) -> None:
    why = "cron starts checks of the arrays at 0:57; wait, or allow less time (--time)."
    report = retune(tmp_path, NotNowError(why))
    assert report.outcome == "reverted"
    assert "was cut: cron starts checks" in report.text
    assert "--time" not in report.text
    assert [each.outcome for each in history.load(tmp_path, UUID).passes] == ["reverted"]


def test_an_array_that_was_stopped_before_its_turn_is_no_failure(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrong with its profile."""

    def stopped() -> Array:
        raise RefusalError("The array /dev/md0 is not running (it is clear); start it.")

    monkeypatch.setattr(ARRAY, "now", stopped)
    report = retune(tmp_path, AutotuneError("nothing is measured"))
    assert (report.outcome, report.text) == (
        "postponed",
        "The array /dev/md0 is not running (it is clear); start it.",
    )
    assert told == []
    assert not history.load(tmp_path, UUID).passes


def test_users_who_come_after_the_originals_are_back(tmp_path: Path, told: list[str]) -> None:
    report = retune(tmp_path, InUseError("The array is in use."))
    assert report.outcome == "reverted"
    assert "original settings are back" in report.text
    assert "The array is in use" in report.text
    assert told == REVERTED
    assert [each.outcome for each in history.load(tmp_path, UUID).passes] == ["reverted"]


def test_a_search_that_fails_after_the_originals_are_back(tmp_path: Path, told: list[str]) -> None:
    report = retune(tmp_path, AutotuneError("The disk is full."))
    assert report.outcome == "failed"
    assert "original settings are back" in report.text
    assert told == [*REVERTED, "failed"]
    passes = history.load(tmp_path, UUID).passes
    assert [each.outcome for each in passes] == ["reverted", "failed"]


def test_an_error_of_ours_is_a_pass_that_failed(tmp_path: Path, told: list[str]) -> None:
    """It must not take the turn of the arrays that come after this one."""
    report = retune(tmp_path, ZeroDivisionError("division by zero"))
    assert report.outcome == "failed"
    assert report.text.startswith("An error in autotune: ZeroDivisionError('division by zero').")
    assert told == [*REVERTED, "failed"]
    passes = history.load(tmp_path, UUID).passes
    assert [each.outcome for each in passes] == ["reverted", "failed"]


def test_what_cannot_be_unpersisted_is_told_with_what_became_of_the_settings(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise AutotuneError("The rule cannot be removed.")

    monkeypatch.setattr(one_pass.persist, "unpersist", read_only)
    report = retune(tmp_path, AutotuneError("not reached"))
    assert report.outcome == "failed"
    assert report.text.startswith("The rule cannot be removed. The original settings are back")
    assert told == ["failed"]


def test_what_is_persisted_stays_if_another_one_was_measured(
    tmp_path: Path, told: list[str], in_force: list[SimpleNamespace]
) -> None:
    in_force[-1].profile = PROVEN
    report = retune(tmp_path, InUseError("The array is in use."))
    assert told == ["reverted"]
    assert "The persisted profile proven was not measured, and comes back when" in report.text


def test_what_is_persisted_stays_if_other_values_are_set(
    tmp_path: Path, told: list[str], in_force: list[SimpleNamespace], persisted: Path
) -> None:
    """As after a pass that put the original settings back, and left what was persisted."""
    in_force[:] = [SimpleNamespace(how="persisted", profile=PROVEN)]
    report = retune(tmp_path, InUseError("The array is in use."))
    assert told == ["reverted"]
    assert persisted.exists()
    assert "The persisted profile proven was not measured" in report.text


def test_what_is_not_set_was_not_measured(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody has set other values, or udev was kept from setting these."""

    class Steady(Slower):
        def __init__(self, *_: object) -> None:
            self.incumbent = {"stripe_cache_size": 256}

        def against_originals(self) -> ComparedInTurn:
            before, after = ({"write.throughput": Estimate(rate, 0.02)} for rate in (100e6, 50e6))
            return ComparedInTurn(judge(FIGURES, [after] * 2, [before] * 2), before, after)

    monkeypatch.setattr(one_pass, "ManagedArray", Steady)
    report = retune(tmp_path, AutotuneError("not reached"))
    assert report.outcome == "unchanged"
    assert "what is set is not all of the profile tried" in report.text
    monkeypatch.setattr(Steady, "__init__", Slower.__init__)
    assert "what is set" not in retune(tmp_path, AutotuneError("not reached")).text


def test_what_was_taken_back_meanwhile_is_not_persisted_again(
    tmp_path: Path, told: list[str], persisted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Adopts(Slower):
        adopted = TRIED  # type: ignore[assignment]

        def back_to_originals(self) -> None:
            persisted.unlink()

    monkeypatch.setattr(one_pass, "ManagedArray", Adopts)
    monkeypatch.setattr(Slower, "tune", lambda _: None)
    monkeypatch.setattr(one_pass.persist, "persist_applied", lambda *_: told.append("persisted"))
    monkeypatch.setattr(one_pass, "Store", lambda _: SimpleNamespace(thin=lambda _: None))
    report = retune(tmp_path, AutotuneError("not reached"))
    assert report.outcome == "reverted"
    assert told == ["reverted"]


def test_what_is_adopted_in_place_of_what_was_persisted_is_persisted(
    tmp_path: Path,
    told: list[str],
    persisted: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pass itself has taken the slower profile back, before it searched."""

    class Adopts(Slower):
        def tune(self) -> Setting:
            return dict(PROVEN.knobs)

        def prove(self, _: Setting) -> ComparedInTurn:
            return self.against_originals()

        def adopt(self, setting: Setting, _: ComparedInTurn) -> None:
            self.adopted, self.incumbent = PROVEN, setting  # type: ignore[assignment]

    monkeypatch.setattr(one_pass, "ManagedArray", Adopts)
    monkeypatch.setattr(one_pass.persist, "unpersist", lambda *_: persisted.unlink())
    monkeypatch.setattr(one_pass.persist, "persist_applied", lambda new, *_: told.append(new))
    monkeypatch.setattr(one_pass, "Store", lambda _: SimpleNamespace(thin=lambda _: None))
    report = retune(tmp_path, AutotuneError("not reached"))
    assert report.outcome == "adopted"
    assert told == ["reverted", PROVEN.knobs, "adopted"]


@pytest.mark.parametrize("figure", ["[0.0, 0.0]", "[-1.0, 0.0]", "[1e999, 0.0]", "[1.0, -1.0]"])
@pytest.mark.parametrize("which", ["figures", "latest"])
def test_a_figure_that_cannot_be_is_damage(
    tmp_path: Path, told: list[str], which: str, figure: str
) -> None:
    path = history.path_of(tmp_path, UUID)
    path.parent.mkdir()
    path.write_text(f'{{"fingerprint": "as ever", "{which}": {{"write.throughput": {figure}}}}}')
    report = retune(tmp_path, AutotuneError("not reached"))
    assert report.outcome == "failed"
    assert "is damaged" in report.text
    assert told == ["failed"]


def test_a_signal_after_the_originals_are_back(tmp_path: Path, told: list[str]) -> None:
    with pytest.raises(SignalledError):
        retune(tmp_path, SignalledError("Stopped by SIGTERM."))
    assert told == REVERTED
    assert [each.outcome for each in history.load(tmp_path, UUID).passes] == ["reverted"]


def test_a_history_that_cannot_be_written_hides_nothing(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise AutotuneError("It cannot be written: No space left on device.")

    monkeypatch.setattr(history, "save", full)
    report = retune(tmp_path, AutotuneError("not reached"))
    assert (report.outcome, told) == ("failed", [*REVERTED, "failed"])
    assert "original settings are back" in report.text
