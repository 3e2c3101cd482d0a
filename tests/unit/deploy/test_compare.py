"""Two profiles, or a profile and an array, side by side."""

import json
from pathlib import Path

import fake_sysfs
import pytest
from some_profile import document
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.deploy import compare
from autotune.deploy.compare import class_rows, knob_rows, side
from autotune.errors import RefusalError, UsageError
from autotune.store.database import Store
from autotune.system.array import Array, find_array


def write(path: Path, knobs: dict[str, int | str], **proven_on: object) -> str:
    path.write_text(json.dumps(document(knobs, **proven_on)))
    return str(path)


def test_two_profiles_differ_in_what_either_sets(tmp_path: Path) -> None:
    left = side(write(tmp_path / "a.json", {"read_ahead_kb": 1, "rmw_level": 2}), tmp_path)
    other = write(tmp_path / "b.json", {"rmw_level": 2, "scheduler": "bfq"}, members=9)
    right = side(other, tmp_path)
    rows = {row.what: (row.a, row.b, row.same) for row in knob_rows(left, right)}
    assert rows == {
        "read_ahead_kb": (1, None, False),
        "rmw_level": (2, 2, True),
        "scheduler": (None, "bfq", False),
    }
    assert [row.what for row in class_rows(left, right) if not row.same] == ["members"]


def test_of_an_array_only_what_the_profile_sets_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_sysfs.raid6(tmp_path)

    def find(device: str) -> Array:
        return find_array(device, tmp_path)

    monkeypatch.setattr(compare, "find_array", find)
    file = write(tmp_path / "a.json", {"stripe_cache_size": 512, "scheduler": "mq-deadline"})
    for a, b in ((file, "/dev/md0"), ("/dev/md0", file)):
        rows = knob_rows(side(a, tmp_path), side(b, tmp_path))
        assert {row.what: row.same for row in rows} == {
            "stripe_cache_size": False,
            "scheduler": True,
        }
    both = knob_rows(side("/dev/md0", tmp_path), side("/dev/md0", tmp_path))
    assert not both or all(row.same for row in both)


def test_a_run_stands_for_its_profile(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no run 1"):
        side("1", tmp_path)
    store = Store(tmp_path)
    for profile in (document({"rmw_level": 0}), None):
        number = store.start_run("u", "/dev/md0", "print", {})
        store.finish_run(number, "done", "so", profile)
    assert side("1", tmp_path).values == {"rmw_level": 0}
    with pytest.raises(RefusalError, match="kept the original settings"):
        side("2", tmp_path)


def test_the_exit_code_is_0_whether_they_differ_or_not(tmp_path: Path) -> None:
    a = write(tmp_path / "a.json", {"rmw_level": 0})
    for b, same in ((a, True), (write(tmp_path / "b.json", {"rmw_level": 1}), False)):
        done = CliRunner().invoke(app, ["diff", a, b, "--json", "--state-dir", str(tmp_path)])
        assert done.exit_code == 0
        assert json.loads(done.stdout)["same"] == same


@pytest.mark.parametrize("knobs", [{"nr_requests": 5}, {"no_such_knob": 1}, {"scheduler": "magic"}])
def test_what_could_be_applied_nowhere_is_named(
    tmp_path: Path, knobs: dict[str, int | str]
) -> None:
    sound = write(tmp_path / "a.json", {"rmw_level": 0})
    broken = write(tmp_path / "b.json", knobs)
    words = ["diff", sound, broken, "--state-dir", str(tmp_path)]
    faults = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["faults"]
    (fault,) = faults.values()
    assert next(iter(knobs)) in fault or "magic" in fault
    assert "cannot be applied" in CliRunner().invoke(app, words).stdout
