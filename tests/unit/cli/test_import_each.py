"""`autotune import --all`: one array after the other."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from some_profile import profile

from autotune.cli.import_ import _for_each
from autotune.deploy.rescale import Plan
from autotune.errors import AutotuneError, SignalledError, StoppedError, UsageError
from autotune.measure.workload import load_workload
from autotune.tuning import import_profile
from autotune.tuning.import_profile import Arrival
from autotune.tuning.preparation import Options

PLAN = Plan((), (), ())
EACH = [Options(f"/dev/md{number}", load_workload("quick")) for number in range(3)]


@pytest.fixture(autouse=True)
def _planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_profile, "planned", lambda *_: PLAN)


def tried(error: AutotuneError) -> list[Arrival]:
    """What comes of three arrays, on the second of which that happens."""

    def work(options: Options, plan: Plan) -> Arrival:
        if options.device == "/dev/md1":
            raise error
        return Arrival(options.device, plan, True, "it is better")

    return _for_each(Console(file=io.StringIO()), profile(), EACH, Path("/nowhere"), work)


@pytest.mark.parametrize(
    "error", [StoppedError("Stopped: a member failed."), UsageError("In 1 min nothing.")]
)
def test_an_array_that_fails_stops_none_after_it(error: AutotuneError) -> None:
    arrivals = tried(error)
    assert [each.device for each in arrivals] == ["/dev/md0", "/dev/md1", "/dev/md2"]
    assert [each.kept for each in arrivals] == [True, False, True]
    assert arrivals[1].reason == str(error)


def test_a_signal_ends_it_and_what_was_kept_is_still_said() -> None:
    with pytest.raises(SignalledError) as found:
        tried(SignalledError("Stopped by SIGTERM."))
    arrays = found.value.document["arrays"]
    assert isinstance(arrays, list)
    assert [each["device"] for each in arrays] == ["/dev/md0", "/dev/md1"]
    assert arrays[0]["kept"]
