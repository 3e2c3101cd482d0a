"""A check that cannot be started or ended is no fault of the setting."""

from pathlib import Path

import pytest
from fake_run import Machine

from autotune.errors import InfeasibleError, StoppedError
from autotune.measure import phase as phase_module
from autotune.measure.fio import Fio
from autotune.measure.phase import Bench
from autotune.measure.workload import Phase
from autotune.measure.write_budget import Written


@pytest.mark.parametrize(("hangs", "words"), [(False, "a check could not be"), (True, "fio hangs")])
def test_a_check_that_md_does_not_take_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool, words: str
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    resync = machine.preparation("recipe").phases[-1]
    assert resync.check

    def fails(_phase: Phase, _bench: Bench, fio: Fio, *_: object) -> None:
        fio.hangs = hangs
        raise InfeasibleError("The kernel did not take check in sync_action: the array is busy.")

    monkeypatch.setattr(phase_module, "_measure", fails)
    with pytest.raises(StoppedError, match=words):
        phase_module.measure(resync, machine.bench(Written()), 1)
