"""Whether fio is silent, or nobody listened. A shell stands in for it."""

import json
import time
from pathlib import Path

import pytest

from autotune.measure import fio as fio_module
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.workload import Probe

WORD = json.dumps({"jobs": []})
JOB = Job("probe", Probe(rate_iops=50), Target(Path("/dev/null"), 4096))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is started in place of fio."""
    script = [""]
    monkeypatch.setattr(fio_module, "command", lambda *_: ("sh", "-c", script[0]))
    monkeypatch.setattr(fio_module, "LISTENS_S", 0.1)
    return script


def test_who_listens_in_vain_counts_its_silence(script: list[str]) -> None:
    script[0] = "exec sleep 60"
    with Fio([JOB], 60, 1) as fio:
        for _ in range(3):
            assert fio.poll(0.05) is None
        assert 0.1 < fio.silent_s < 0.4


def test_who_does_not_listen_for_long_does_not_call_that_silence(script: list[str]) -> None:
    script[0] = "exec sleep 60"
    with Fio([JOB], 60, 1) as fio:
        time.sleep(0.5)
        assert fio.poll(0.01) is None
        assert fio.silent_s < 0.2


def test_part_of_a_document_is_a_word(script: list[str]) -> None:
    script[0] = "sleep 0.3; printf '{'; exec sleep 60"
    with Fio([JOB], 60, 1) as fio:
        assert fio.poll(0.1) is None
        assert fio.silent_s > 0
        time.sleep(0.5)
        assert fio.poll(0.01) is None
        # Listened to in vain after that word.
        assert fio.silent_s < 0.1


def test_what_was_said_while_nobody_listened_is_heard_at_once(script: list[str]) -> None:
    script[0] = f"echo '{WORD}'; exec sleep 60"
    with Fio([JOB], 60, 1) as fio:
        time.sleep(0.3)
        assert fio.poll(0.001) == {}
        assert fio.silent_s == 0
