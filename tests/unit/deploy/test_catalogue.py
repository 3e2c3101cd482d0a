"""Profiles and starting points by name, and the hints that they give to a search."""

import json
import os
import time
from pathlib import Path

import fake_sysfs
import pytest
from fake_run import Machine
from some_profile import DOCUMENT, document, profile

from autotune.deploy import catalogue
from autotune.deploy.catalogue import Entry, StartingPoint
from autotune.errors import UsageError
from autotune.knobs import by_name
from autotune.measure.workload import load_workload
from autotune.measure.workload import shipped as workloads
from autotune.system.array import find_array
from autotune.tuning.hints import NEWEST, hints

POINT = """
schema_version = 1
name = "mine"
levels = ["raid6"]
media = ["hdd"]
[knobs.stripe_cache_size]
value = 1024
source = "https://example.org/"
"""


@pytest.fixture
def shipped(tmp_path: Path) -> list[Entry]:
    found, faults = catalogue.entries(tmp_path, tmp_path)
    assert not faults
    return found


def test_what_is_shipped_is_valid_and_every_value_has_its_source(shipped: list[Entry]) -> None:
    assert {e.name for e in shipped} == {"hdd-nas", "sata-ssd", "nvme", "database", "rebuild"}
    for entry in shipped:
        assert isinstance(entry.item, StartingPoint)
        assert entry.name == entry.item.name
        assert entry.item.workload in workloads()
        assert all(p.source.startswith("http") for p in entry.item.knobs.values())


@pytest.mark.parametrize("level", ["raid1", "raid5", "raid6", "raid10"])
@pytest.mark.parametrize("media", ["hdd", "ssd"])
def test_what_is_shipped_comes_to_something_on_arrays_of_its_class(
    tmp_path: Path, shipped: list[Entry], level: str, media: str
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    names = ["sda", "sdb", "sdc", "sdd"]
    for name in names:
        machine.disk(name, rotational=media == "hdd")
    machine.array("md0", level, names)
    array = find_array("md0", tmp_path)
    for entry in shipped:
        assert isinstance(entry.item, StartingPoint)
        planned = catalogue.plan_of(entry.item, array, 1 << 30)
        fits = level in entry.item.levels and media in entry.item.media
        assert bool(planned.refusals) != fits, planned.refusals
        for name, value in planned.setting.items():
            assert by_name(name).valid(array, value) is None


def test_own_and_site_files_are_listed_and_a_faulty_one_is_named(tmp_path: Path) -> None:
    site, own = tmp_path / "site", tmp_path / "profiles"
    site.mkdir()
    own.mkdir()
    (site / "mine.toml").write_text(POINT)
    (site / "theirs.json").write_text(json.dumps(DOCUMENT))
    (site / "broken.toml").write_text("x")
    for number in range(3):
        (own / f"run{number}.json").write_text(json.dumps(DOCUMENT))
        os.utime(own / f"run{number}.json", (number, number))
    found, (fault,) = catalogue.entries(tmp_path, site)
    listed = [(entry.kind, entry.name) for entry in found if entry.kind != "shipped"]
    assert listed == [("site", "mine"), ("site", "theirs")] + [
        ("own", f"run{number}") for number in (2, 1, 0)
    ]
    assert "broken.toml" in fault
    assert catalogue.find("mine", tmp_path, site) == catalogue.find(
        str(site / "mine.toml"), tmp_path
    )
    assert catalogue.find("hdd-nas", tmp_path, site).name == "hdd-nas"
    with pytest.raises(UsageError, match="autotune profiles"):
        catalogue.find("nothing", tmp_path, site)
    with pytest.raises(UsageError, match=r"broken.toml.* is not valid"):
        catalogue.find("broken", tmp_path, site)
    with pytest.raises(UsageError, match="cannot be read"):
        catalogue.find("/nonexistent.toml", tmp_path, site)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("stripe_cache_size", "turbo", 'no setting "turbo"'),
        ("1024", '"$(reboot)"', "value"),
        ("1024", "1.5", "value"),
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("schema_version = 1", "", "schema_version"),
        ('"raid6"', '"raid0"', "levels"),
        ('["raid6"]', "[]", "levels"),
        ('"mine"', '"../../etc/passwd"', "name"),
        ("https://example.org/", "", "source"),
        ("https://example.org/", "\\u001b[2J", "cannot be printed"),
        ("source", "shell", "source"),
    ],
)
def test_an_altered_starting_point_is_refused(old: str, new: str, fault: str) -> None:
    assert old in POINT
    with pytest.raises(UsageError, match=fault):
        catalogue.parse_starting_point(POINT.replace(old, new, 1), "mine.toml")


def test_a_starting_point_for_another_class_is_refused(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path, "raid5")
    point = catalogue.parse_starting_point(POINT, "mine.toml")
    (refusal,) = catalogue.plan_of(point, find_array("md0", tmp_path), 1 << 30).refusals
    assert refusal == "It is for raid6 on hdd, and /dev/md0 is raid5 on hdd."


def test_hints_are_settings_that_the_search_may_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparation = Machine(tmp_path, monkeypatch).preparation("bayes")
    point = catalogue.parse_starting_point(POINT.replace("1024", "32768"), "mine.toml")
    known = [
        Entry("site", "mine.toml", point),
        Entry("own", "a.json", profile({"read_ahead_kb": 1000, "group_thread_cnt": 2})),
        Entry("own", "other.json", profile(level="raid5")),
        Entry("own", "same.json", profile({"stripe_cache_size": 256})),
        Entry("own", "nonsense.json", profile({"turbo": 1})),
        Entry("own", "twice.json", profile({"read_ahead_kb": 800})),
    ]
    changed = [
        {k: v for k, v in hint.items() if v != preparation.baseline[k]}
        for hint in hints(preparation, known)
    ]
    assert changed == [{"stripe_cache_size": 2048}, {"read_ahead_kb": 768}]


def test_of_many_own_profiles_the_newest_give_hints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparation = Machine(tmp_path, monkeypatch).preparation("bayes")
    same = Entry("own", "same.json", profile({"stripe_cache_size": 256}))
    last = Entry("own", "last.json", profile({"stripe_cache_size": 1024}))
    assert not hints(preparation, [same] * NEWEST + [last])
    assert hints(preparation, [same] * (NEWEST - 1) + [last])


def test_a_folder_of_many_profiles_is_read_soon(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    for number in range(200):
        (tmp_path / "profiles" / f"{number}.json").write_text(json.dumps(document()))
    started = time.process_time()
    catalogue.entries(tmp_path, tmp_path)
    assert time.process_time() - started < 1


def test_a_file_here_does_not_take_the_place_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("database").write_text("{}")
    assert catalogue.find("database", tmp_path).name == "database"
    Path("balanced").mkdir()
    assert load_workload("balanced").name == "balanced"


def test_the_command_that_measures_a_starting_point_names_the_device(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="autotune import hdd-nas --device /dev/md7`"):
        catalogue.find_profile("hdd-nas", tmp_path, "/dev/md7")
    with pytest.raises(UsageError, match="autotune import hdd-nas --device DEVICE`"):
        catalogue.find_profile("hdd-nas", tmp_path)
