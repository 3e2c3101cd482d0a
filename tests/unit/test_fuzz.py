"""Whatever a stranger's file or a program's output holds, it is understood or refused in one plain
line, in little time. `make fuzz` looks longer: AUTOTUNE_FUZZ names the Hypothesis profile."""

import atexit
import json
import math
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from fuzz_inputs import (
    FIO,
    HEAD,
    JOB_FILE,
    MDSTAT,
    PROFILE,
    SCENARIO,
    STARTING_POINT,
    WORKLOAD,
    altered,
    anything,
    spliced,
    toml_document,
    values,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.deploy import catalogue
from autotune.deploy.rescale import plan
from autotune.errors import AutotuneError
from autotune.export import FORMATS
from autotune.knobs import ALL
from autotune.knobs.harmful import judge_on, ram_budget_for
from autotune.knobs.profile_file import load_profile, parse_profile
from autotune.lab.scenario import load, parse_scenario
from autotune.measure import fio_output
from autotune.measure.fio_output import Documents
from autotune.measure.workload import load_workload, parse_fio_job, parse_workload
from autotune.problem.ceilings import parse_ceiling
from autotune.quantities import (
    parse_bytes,
    parse_latency_ns,
    parse_seconds,
    parse_share,
    show_bytes,
)
from autotune.safety.journal import Journal
from autotune.stats import histogram
from autotune.system import mdstat
from autotune.system.array import Array, find_array

settings.register_profile("few", max_examples=30, derandomize=True, database=None, deadline=None)
settings.register_profile(
    "many", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile(os.environ.get("AUTOTUNE_FUZZ", "few"))

UUID = fake_sysfs.UUID.replace("-", "")
MAX_CPU_S = 2.0
MAX_HEAP_BYTES = 64 << 20


@contextmanager
def refused_or_understood() -> Iterator[None]:
    started, message = time.process_time(), "."
    try:
        yield
    except AutotuneError as error:
        message = str(error)
    assert message.isprintable()
    assert message.endswith(".")
    assert len(message) < 1000
    assert time.process_time() - started < MAX_CPU_S


@cache
def some_array() -> Array:
    """One of another shape than the profile's, so that its values have to be rescaled."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    fake_sysfs.raid6(root := Path(folder.name), "raid6", 6)
    return find_array("md0", root)


def use_profile(text: str) -> None:
    profile, array = parse_profile(text, "own.json"), some_array()
    json.dumps(profile.model_dump(mode="json"), allow_nan=False)
    show_bytes(profile.ram_bytes)
    planned = plan(profile, array, 1 << 30, 100_000)
    assert all(each.isprintable() for each in (*planned.refusals, *planned.notes))
    judge_on(array, profile.knobs, ram_budget_for(profile, array))
    for render in FORMATS.values():
        render(profile, UUID)


def use_workload(parse: Callable[[str, str], Any], text: str) -> None:
    workload = parse(text, "own")
    json.dumps([workload.model_dump(mode="json"), [f.name for f in workload.figures]])
    assert all(c.limit_ns is None or math.isfinite(c.limit_ns) for c in workload.limits)


def use_scenario(text: str) -> None:
    scenario = parse_scenario(text, "own.toml")
    assert sum(disk.spec()["size"] for disk in scenario.each_disk) < 1 << 40


def use_fio(document: object) -> None:
    for counters in fio_output.parse(document).values():
        counters.since(counters)
        for found in (counters.reads, counters.writes):
            histogram.percentile([found] * 4, 99.0)


def use_journal(text: str, folder: Path) -> None:
    path = folder / "journal.jsonl"
    path.write_text(text, errors="replace")
    Journal.load(path)


PARSERS: dict[str, tuple[Callable[[str], Any], str, Any]] = {
    "profile": (use_profile, json.dumps(PROFILE), altered(PROFILE).map(json.dumps)),
    "workload": (
        lambda text: use_workload(parse_workload, text),
        toml_document(WORKLOAD),
        altered(WORKLOAD).map(toml_document),
    ),
    "job file": (lambda text: use_workload(parse_fio_job, text), JOB_FILE, st.just(JOB_FILE)),
    "starting point": (
        lambda text: catalogue.parse_starting_point(text, "own.toml"),
        toml_document(STARTING_POINT),
        altered(STARTING_POINT).map(toml_document),
    ),
    "scenario": (use_scenario, toml_document(SCENARIO), altered(SCENARIO).map(toml_document)),
    "mdstat": (lambda text: mdstat.sync_position_kib(text, "md0"), MDSTAT, st.just(MDSTAT)),
}


@pytest.mark.parametrize("kind", PARSERS)
def test_the_examples_to_alter_are_valid(kind: str) -> None:
    use, valid, _ = PARSERS[kind]
    use(valid)
    use_fio(FIO)


@pytest.mark.parametrize("kind", PARSERS)
def test_any_text_is_understood_or_refused(kind: str) -> None:
    use, valid, altered_texts = PARSERS[kind]

    @given(st.one_of(anything, spliced(valid), altered_texts, values.map(toml_document)))
    def holds(text: str) -> None:
        with refused_or_understood():
            use(text)

    holds()


numbers = st.one_of(st.integers(-2, 1 << 20), st.integers(-(1 << 62), 1 << 62))
words = st.sampled_from(["hdd", "bfq", "none", "mq-deadline", "bfq,none", "system"])


@given(
    st.dictionaries(
        st.sampled_from([knob.name for knob in ALL]), numbers | words, min_size=1, max_size=3
    )
)
def test_any_values_of_a_profile_are_understood_or_refused(knobs: dict[str, int | str]) -> None:
    with refused_or_understood():
        use_profile(json.dumps({**PROFILE, "knobs": knobs}))


@given(st.one_of(values, altered(FIO)))
def test_any_document_of_fio_is_understood_or_refused(document: Any) -> None:
    with refused_or_understood():
        use_fio(document)


@given(st.one_of(anything, spliced(json.dumps(FIO) * 2)), st.integers(1, 300))
def test_any_output_of_fio_is_cut_alike_in_whatever_pieces(text: str, size: int) -> None:
    whole, pieces = Documents(), Documents()
    with refused_or_understood():
        found = whole.feed(text)
        cut = [d for i in range(0, len(text), size) for d in pieces.feed(text[i : i + size])]
        assert repr(found) == repr(cut)
        for document in found:
            use_fio(document)


@given(st.one_of(anything, spliced(json.dumps(HEAD) + "\n"), altered(HEAD).map(json.dumps)))
def test_any_journal_is_understood_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    with refused_or_understood():
        use_journal(text, tmp_path_factory.getbasetemp())


@given(st.one_of(anything, st.from_regex(r"\d{1,400}(\.\d+)?\s?[a-zA-Zµ%]{0,4}", fullmatch=True)))
def test_any_quantity_is_understood_or_refused(text: str) -> None:
    for parse in (parse_bytes, parse_seconds, parse_latency_ns, parse_share):
        with refused_or_understood():
            quantity = parse(text)
            assert quantity is None or 0 < quantity < math.inf
    with refused_or_understood():
        ceiling = parse_ceiling(text)
        assert math.isfinite(ceiling.limit_ns or ceiling.times_idle or math.inf)


LOADERS: dict[str, Callable[[Path], Any]] = {
    "own.json": load_profile,
    "own.toml": lambda path: load_workload(str(path)),
    "start.toml": catalogue.load,
    "own.fio": lambda path: load_workload(str(path)),
    "lab.toml": lambda path: load(str(path)),
}
BOMBS = {
    "nested arrays": b"[" * 30_000,
    "nested tables": b'{"a":' * 10_000,
    "nested in TOML": b"a = " + b"[" * 30_000,
    "dotted key": b"a" + b".a" * 32_000 + b" = 1",
    "dotted keys": (b"a" + b".a" * 2000 + b" = 1\n") * 16,
    "long number": b"a = " + b"9" * 60_000,
    "nothing but NUL": b"\0" * 60_000,
    "no UTF-8": b"\xff\xfe" * 30_000,
    "many sections": b"[a]\n" * 16_000,
    "many tables": b"[[phases]]\n" * 5000,
    "too large": b"#" * (2 << 20),
}


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_no_file_takes_long_or_much_memory(tmp_path: Path, name: str, bomb: str) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[bomb])
    tracemalloc.start()
    try:
        with refused_or_understood(), pytest.raises(AutotuneError):
            LOADERS[name](path)
        assert tracemalloc.get_traced_memory()[1] < MAX_HEAP_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ['{"a": ', '{"a": "', '{"a": "\\', '[{"', "{}", '{"a": 9'])
def test_output_that_is_not_fios_takes_no_long_time(text: str) -> None:
    documents = Documents()
    with refused_or_understood():
        for _ in range(50):
            documents.feed(text * 1000)
