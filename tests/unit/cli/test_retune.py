"""What a pass of re-tuning finds left by earlier runs."""

from pathlib import Path

import pytest

from autotune.cli import retune
from autotune.deploy import udevd
from autotune.safety import put_back_each
from autotune.safety.outcome import Outcome
from autotune.safety.paths import journal_path
from autotune.safety.record import Record

UUID = "0123456789abcdef0123456789abcdef"


def test_what_a_journal_kept_udev_from_is_set_before_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that a power cut has left, and one that it cut short in its first line."""
    whole, torn = (journal_path(tmp_path, uuid) for uuid in (UUID, UUID[::-1]))
    whole.parent.mkdir(parents=True)
    whole.write_text("{}\n")
    torn.write_text("{")
    woken: list[list[str]] = []

    def put_back(path: Path) -> tuple[Record, Outcome]:
        path.unlink()
        return Record(UUID, "/dev/md0", "", 1), Outcome()

    monkeypatch.setattr(put_back_each, "put_back", put_back)
    monkeypatch.setattr(udevd, "wake", lambda uuids, _notice: woken.append(sorted(uuids)))
    retune._put_back(tmp_path)
    assert not whole.exists()
    assert not torn.exists()
    assert woken == [sorted((UUID, UUID[::-1]))]
    retune._put_back(tmp_path)
    assert len(woken) == 1
