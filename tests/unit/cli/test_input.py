"""What people type and the files they give: understood, or refused in one sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.knobs import parse_knobs
from autotune.knobs.profile_file import load_profile, parse_profile, save_profile
from autotune.measure.workload import load_workload, parse_workload, shipped
from autotune.problem.ceilings import Ceiling, check_phases, doubt, parse_ceiling, resolve
from autotune.problem.figure import Estimate, Figure
from autotune.problem.profile import Profile
from autotune.quantities import (
    parse_bytes,
    parse_latency_ns,
    parse_rate,
    parse_seconds,
    parse_share,
    show_bytes,
)
from autotune.tuning.prepare import _unmeasured
from autotune.untrusted import MOST_KEPT_BYTES

PROFILE = """{"schema_version": 1, "name": "md0-balanced", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid6", "members": 5, "chunk_kib": 64, "media": "hdd", "kernel": "6.1"},
"workload": "balanced", "knobs": {"stripe_cache_size": 4096, "scheduler": "bfq"},
"before": {"stripe_cache_size": 256, "scheduler": "none"}, "ram_bytes": 1, "ram_budget_bytes": 2,
"evidence": {"gain": 1.5, "low": 1.4, "high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""


def test_quantities_are_read_in_their_units() -> None:
    assert parse_bytes("256MiB") == 256 << 20
    assert parse_seconds("5min") == 300
    assert parse_latency_ns("20ms") == 20e6
    assert parse_share("5%") == 0.05
    assert parse_share("5MiB") is None
    assert parse_seconds("1h30min") == parse_seconds("1h 30 min") == 5400
    assert parse_seconds("30 minutes") == parse_seconds("30min") == 1800
    assert parse_seconds("1d") == parse_seconds("24 hours") == 86400


@pytest.mark.parametrize("text", ["1e-9MB", "256MiB x", "50GiB/day", "1-5GiB", "-1MB", "0", ""])
def test_what_is_no_size_is_refused_and_so_is_what_is_no_rate(text: str) -> None:
    for parse, given in ((parse_bytes, text), (parse_rate, text), (parse_rate, f"{text}/s")):
        with pytest.raises(UsageError):
            parse(given)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("parse", [parse_bytes, parse_rate, parse_seconds, parse_latency_ns])
@pytest.mark.parametrize("text", ["1" * 300_000 + "!", " " * 300_000 + "x", "1h" * 100_000 + "!"])
def test_a_text_of_any_length_is_refused_at_once(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


READ = 'load={rw="read",block_kib=64}'


@pytest.mark.parametrize("text", ["0%", "101%", "500%"])
def test_what_is_no_part_of_the_memory_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="at most 100 %"):
        parse_share(text)


@pytest.mark.parametrize("text", ["", "x", "-1s", "5", "0s", "5 parsecs", "nan s", "1e999s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seconds(text)


def test_bytes_are_shown_in_the_fitting_unit() -> None:
    assert [show_bytes(n) for n in (0, 1023, 1536, 5 << 20, 300 << 30)] == [
        "0 B", "1023 B", "1.5 KiB", "5.0 MiB", "300 GiB",
    ]  # fmt: skip


@pytest.mark.parametrize("asked", ["resync=600ms", "20ms", "1250ms", "340µs", "1.5x", "idle=2s"])
def test_a_ceiling_is_shown_as_it_is_asked_for(asked: str) -> None:
    """In one word, since it stands in commands that are to be copied."""
    assert str(parse_ceiling(asked)) == asked


def test_ceilings_are_absolute_or_relative_and_of_one_phase_or_all() -> None:
    assert parse_ceiling("20ms") == Ceiling(None, 20e6, None)
    assert parse_ceiling("resync=1.5x") == Ceiling("resync", None, 1.5)
    with pytest.raises(UsageError):
        parse_ceiling("0.5x")


BALANCED = load_workload("balanced").figures
BASELINE = {
    "idle.p99": Estimate(10e6, 0.05),
    "write.p99": Estimate(30e6, 0.05),
    "resync.p99": Estimate(40e6, 0.2),
}


def test_a_ceiling_that_no_disk_can_meet_is_refused_and_one_that_limits_nothing_questioned() -> (
    None
):
    for text in ("0.01ms", "resync=5us"):
        with pytest.raises(UsageError, match=r"No disk answers .* Usual ceilings are 20ms"):
            parse_ceiling(text)
    assert doubt(parse_ceiling("0.1ms")) == doubt(parse_ceiling("10s")) == ""
    assert doubt(parse_ceiling("3x")) == ""
    assert "20.0 s hardly limits anything" in doubt(parse_ceiling("resync=20s"))


def ceiling_of(name: str, *asked: str) -> float | None:
    figures = resolve(BALANCED, [parse_ceiling(text) for text in asked], BASELINE)
    return next(f.limit(BASELINE) for f in figures if f.name == name)


def test_the_most_special_ceiling_wins() -> None:
    assert ceiling_of("resync.p99", "50ms", "resync=25ms") == 25e6
    assert ceiling_of("write.p99", "50ms", "resync=25ms") == 50e6
    assert ceiling_of("resync.p99", "2x") == 20e6


def test_without_a_ceiling_it_is_the_baseline_and_some_noise() -> None:
    assert ceiling_of("write.p99") == pytest.approx(33e6, rel=0.01)
    assert ceiling_of("resync.p99") == pytest.approx(40e6 * 1.49, rel=0.01)
    assert all(f.ratio and not f.ceiling for f in resolve(BALANCED, [], BASELINE) if f.limited)
    assert ceiling_of("write.throughput") is None


def test_a_ceiling_that_even_the_idle_array_breaks_is_refused() -> None:
    with pytest.raises(RefusalError, match=r"idle array already takes 10\.0 ms"):
        ceiling_of("resync.p99", "5ms")


def test_a_ceiling_of_a_phase_without_a_probe_is_refused() -> None:
    with pytest.raises(UsageError, match="idle, resync, write"):
        check_phases([parse_ceiling("mix=20ms")], BALANCED)


def test_two_ceilings_of_one_phase_are_refused() -> None:
    for texts in (["20ms", "1.5x"], ["write=20ms", "write=30ms"]):
        with pytest.raises(UsageError, match="There are two ceilings for"):
            check_phases([parse_ceiling(text) for text in texts], BALANCED)
    check_phases([parse_ceiling(text) for text in ("20ms", "write=30ms")], BALANCED)


def test_a_ceiling_of_a_phase_with_too_few_requests_for_a_p99_is_refused() -> None:
    shown = {name: figure for name, figure in BASELINE.items() if name != "resync.p99"}
    with pytest.raises(RefusalError, match=r"resync=50ms cannot be judged: too few requests"):
        resolve(BALANCED, [parse_ceiling("resync=50ms")], shown)
    # For all phases, it is for those of which something is known; one that is left out is told.
    resolve(BALANCED, [parse_ceiling("50ms"), parse_ceiling("other=50ms")], shown)


def test_a_ceiling_of_a_phase_that_is_left_out_is_told() -> None:
    phases = load_workload("balanced").phases
    reads = tuple(phase for phase in phases if not phase.writes)
    asked = [parse_ceiling("write=50ms"), parse_ceiling("50ms")]
    assert not list(_unmeasured(asked, phases))
    (finding,) = _unmeasured(asked, reads)
    assert "The ceiling write=50ms is not judged: the phase write is not" in finding.message


def test_a_ceiling_without_a_phase_before_its_sign_is_refused() -> None:
    with pytest.raises(UsageError, match="names no phase"):
        parse_ceiling("=20ms")


def test_a_ceiling_of_a_workload_without_a_probe_is_refused() -> None:
    with pytest.raises(UsageError, match="No phase of this workload has a probe"):
        check_phases([parse_ceiling("20ms")], [Figure("read.throughput", "read", "throughput", 1)])


@pytest.mark.parametrize("name", ["own.toml", "own.fio"])
def test_a_workload_that_is_no_plain_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="is no plain file"):
        load_workload(str(tmp_path / name))


def test_a_workload_file_is_known_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "own.job").write_text("[a]\nrw=read\n")
    with pytest.raises(UsageError, match=r"\.fio if it is a fio job file"):
        load_workload(str(tmp_path / "own.job"))


def test_a_workload_brings_its_own_ceilings() -> None:
    assert load_workload("rebuild").limits == (parse_ceiling("resync=8x"),)
    assert load_workload("balanced").limits == ()


def test_all_shipped_workloads_are_valid() -> None:
    assert set(shipped()) >= {"balanced", "database", "nas", "quick", "rebuild", "streaming"}
    for name in shipped():
        assert load_workload(name).name == name


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "name"),
        ("x", "TOML"),
        ('name="a"\nphases=[]', "phases"),
        ('name="a"\n[[phases]]\nname="p"\nweight=1', "needs a load"),
        ('name="a"\n[[phases]]\nname="p"\n' + READ, "no phase has a weight"),
        ('name="a"\n[[phases]]\nname="p"\nweight=1\n' + READ + '\nfilename="/etc"', "filename"),
        ('name="../a"\n[[phases]]\nname="p"\nweight=1\n' + READ, "name"),
        ('name="a"\n[[phases]]\nname="p"\nweight=1\nload={rw="trim",block_kib=4}', "rw"),
        ('name="a"\n[[phases]]\nname="p"\nweight=nan\ncheck=true', "weight"),
        (
            'name="a"\nceilings=["p=5ms"]\n[[phases]]\nname="p"\nweight=1\n' + READ,
            "No phase",
        ),
        (
            'name="a"\nceilings=["soon"]\n[[phases]]\nname="p"\nweight=1\n' + READ,
            "latency",
        ),
        ('name="a"\nceilings=[".5x"]\n[[phases]]\nname="p"\nweight=1\n' + READ, "latency"),
        ("a=" + "[" * 5000, "TOML"),
    ],
)
def test_a_faulty_workload_is_refused_and_the_fault_named(text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        parse_workload(text, "mine.toml")


def test_a_missing_workload_names_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="balanced"):
        load_workload("nonsense")
    with pytest.raises(UsageError, match="cannot be read"):
        load_workload("/nonexistent/file.toml")


def test_a_profile_survives_a_file(tmp_path: Path) -> None:
    profile = parse_profile(PROFILE, "test")
    save_profile(profile, tmp_path / "deep" / "p.json")
    assert load_profile(tmp_path / "deep" / "p.json") == profile


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema_version": 1', '"schema_version": 2'),
        ("4096", '"$(reboot)"'),
        ("4096", "4096.5"),
        ("4096", '"hdd"'),
        ("4096", "16"),
        ("4096", "32769"),
        ('"stripe_cache_size": 4096', '"read_ahead_kb": -1'),
        ('"stripe_cache_size": 4096', '"nr_requests": "hdd"'),
        ('"scheduler": "bfq"', '"scheduler": 1'),
        ('"stripe_cache_size": 4096', '"../../etc/passwd": 1'),
        ('"gain": 1.5', '"gain": NaN'),
        ('"gain": 1.5', '"gain": -1'),
        ('"media": "hdd"', '"media": "hdd; reboot"'),
        ('"workload"', '"unknown": 1, "workload"'),
        ("{", "["),
    ],
)
def test_an_altered_profile_is_refused(old: str, new: str) -> None:
    assert old in PROFILE
    with pytest.raises(UsageError):
        parse_profile(PROFILE.replace(old, new, 1), "altered")


def test_a_huge_profile_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MOST_KEPT_BYTES * 1000)
    with pytest.raises(UsageError, match="larger"):
        load_profile(path)


def test_a_profile_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    profile: Profile = parse_profile(PROFILE, "test")
    with pytest.raises(AutotuneError, match="cannot be written"):
        save_profile(profile, tmp_path / "file" / "p.json")


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(UsageError, match='did you mean "database"'):
        load_workload("dbase")
    with pytest.raises(UsageError, match='did you mean "stripe_cache_size"'):
        parse_knobs("stripe_cache")
    with pytest.raises(UsageError) as error:
        load_workload("xyzzy")
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_seconds, "40000d", '"40000d" is more than 100 years; write it like 5min.'),
        (parse_seconds, "24", '"24" has no unit; write it like 24min or 24h.'),
        (parse_seconds, "-5min", '"-5min" is not above zero; write it like 5min.'),
        (parse_seconds, "0h", '"0h" is not above zero; write it like 5min.'),
        (parse_seconds, "0", '"0" is not above zero; write it like 5min.'),
        (parse_latency_ns, "20", '"20" has no unit; write it like 20ms.'),
        (parse_bytes, "5", '"5" has no unit; write it like 5MiB.'),
        (parse_bytes, "5\x1f", '"5?" has no unit; write it like 5MiB.'),
        (parse_bytes, "-1MiB", '"-1MiB" is not above zero; write it like 256MiB.'),
        (parse_rate, "5/s", '"5/s" has no unit; write it like 5MB/s.'),
        (parse_bytes, "x", '"x" is not a size; write it like 256MiB.'),
    ],
)
def test_what_is_wrong_with_a_quantity_is_said(
    parse: Callable[[str], float], text: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert str(refused.value) == said
