"""What the service may be told, and what it refuses."""

from datetime import datetime
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.service.config import Config, load_config, parse_config
from autotune.service.one_pass import in_the_configuration
from autotune.service.quiet_time import parse_window, unsuitable

UUID = "0123456789abcdef0123456789abcdef"
COLONS = "01234567:89abcdef:01234567:89abcdef"

WHOLE = f"""
[defaults]
workload = "nas"
p99_ceilings = ["resync=30ms"]
window = "01:00-05:00"

[array."{COLONS}"]
adopt = false
ram_budget = "256MiB"
guard_p99 = "50ms"

[notify]
command = ["/usr/local/bin/tell", "raid"]
on = ["adopted"]

[metrics]
textfile = "/var/lib/node/autotune.prom"
"""


def test_an_arrays_section_stands_on_the_defaults() -> None:
    config = parse_config(WHOLE, "test")
    care = config.care(UUID)
    assert (care.workload, care.adopt, care.ram, care.guard_ns) == ("nas", False, 256 << 20, 5e7)
    assert care.parsed_window == parse_window("01:00-05:00")
    assert [str(c) for c in care.ceilings] == ["resync=30ms"]
    other = config.care("f" * 32)
    assert (other.workload, other.adopt, other.ram) == ("nas", True, 0.05)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none.toml") == Config()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[defaults]\nworkload = 'nothing'", 'no workload "nothing"'),
        ("[defaults]\nwindow = '5-6'", "write it like 01:00-05:00"),
        ("[defaults]\nwindow = '05:00-05:00'", "has no length"),
        ("[defaults]\np99_ceilings = ['fast']", '"fast" is not a latency'),
        ("[defaults]\np99_ceilings = ['nothing=3ms']", 'no phase "nothing"'),
        ("[defaults]\ntime = 'long'", '"long" is not a time'),
        ("[defaults]\nram_budget = '500%'", "at most 100 %"),
        ("[defaults]\ntrails = 3", "trails"),
        ("guard_p99 = '50ms'", "guard_p99 belongs under [defaults]"),
        ("guard_p99 = '50ms'\n[defaults]", "guard_p99 belongs under [defaults]"),
        ("[defaults]\nguard_least = '10ms'", '"10ms" is not a rate'),
        ("[defaults]\nguard_finish_within = '400d'", "is more than a year"),
        ("[defaults]\ntrials = 2", "trials"),
        ('[array."md0"]\ntrials = 3', "is no UUID"),
        (f'[array."{UUID}"]\n[array."{COLONS}"]', "there twice"),
        (f'[array]\n"{UUID}" = 3', "has to be a table"),
        ("array = 3", "tables of their own"),
        ("[arrays]", "tables of their own"),
        ("[notify]\ncommand = ['tell']", "absolute path"),
        ("[notify]\ncommand = []", "command"),
        ("[metrics]\ntextfile = 'here.prom'", "textfile"),
        ("[metrics]\ntextfile = '/etc/passwd'", "textfile"),
        ('[metrics]\ntextfile = "/var/\\u0000.prom"', "textfile"),
        ("a = " + "[" * 4000, "nested too deeply"),
        ("no toml", "Expected"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, fault: str) -> None:
    with pytest.raises(UsageError, match="The configuration test cannot be used") as caught:
        parse_config(text, "test")
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("window", "clock", "left_h"),
    [
        ("01:00-05:00", "00:59", 0),
        ("01:00-05:00", "01:00", 4),
        ("01:00-05:00", "05:00", 0),
        ("22:00-04:00", "23:00", 5),
        ("22:00-04:00", "03:00", 1),
        ("22:00-04:00", "12:00", 0),
    ],
)
def test_a_window_may_pass_midnight(window: str, clock: str, left_h: float) -> None:
    moment = datetime.strptime(clock, "%H:%M")
    assert parse_window(window).left_s(moment) == left_h * 3600


def test_an_array_is_left_alone_outside_its_window_and_when_in_use() -> None:
    window, moment = parse_window("01:00-02:00"), datetime(2026, 1, 1, 1, 30)
    assert unsuitable(window, moment, 60.0, 0.0) == ""
    assert "too short" in unsuitable(window, moment, 3600.0, 0.0)
    assert "outside" in unsuitable(window, datetime(2026, 1, 1, 3), 60.0, 0.0)
    assert "busy 40%" in unsuitable(None, moment, 60.0, 0.4)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Allow more (--time).", "Allow more (time in the configuration)."),
        ("Use --p99-ceiling 5ms.", "Use p99_ceilings in the configuration 5ms."),
        ("Check `fio --version` (--scratch).", "Check `fio --version` (--scratch)."),
    ],
)
def test_a_pass_names_the_keys_of_the_configuration(said: str, told: str) -> None:
    assert in_the_configuration(said) == told


@pytest.mark.parametrize(
    ("text", "hour", "minute", "opens_in_min"),
    [
        ("01:00-05:00", 0, 30, 30),
        ("01:00-05:00", 1, 0, 0),
        ("01:00-05:00", 5, 0, 20 * 60),
        ("22:00-04:00", 3, 59, 0),
        ("22:00-04:00", 4, 0, 18 * 60),
    ],
)
def test_when_a_window_opens(text: str, hour: int, minute: int, opens_in_min: int) -> None:
    now = datetime(2026, 11, 22, hour, minute, 15)
    expected_s = max(opens_in_min * 60 - 15, 0)
    assert parse_window(text).opens_in_s(now) == expected_s


def test_findings_are_silenced_by_names_that_there_are() -> None:
    config = parse_config('[advise]\nsilence = ["scheduler"]', "test")
    assert config.advise.silence == ("scheduler",)
    with pytest.raises(UsageError, match=r'no finding "schedular" \(did you mean "scheduler"'):
        parse_config('[advise]\nsilence = ["schedular"]', "test")
