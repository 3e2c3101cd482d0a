"""Whom udev is asked for once a journal that kept it from its work is gone."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy import udevd
from autotune.system.array import find_array


@pytest.mark.parametrize("there", ["persisted", "exported", ""])
def test_what_is_persisted_or_exported_is_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    assert udevd.exported_rule(array.uuid).is_absolute()
    rules = {name: tmp_path / name for name in ("persisted", "exported")}
    monkeypatch.setattr(udevd, "rule_path", lambda _uuid: rules["persisted"])
    monkeypatch.setattr(udevd, "exported_rule", lambda _uuid: rules["exported"])
    monkeypatch.setattr(udevd, "list_arrays", lambda: [array])
    told: list[str] = []
    monkeypatch.setattr(udevd, "tell_udev", lambda array, *_: told.append(array.uuid))
    if there:
        rules[there].touch()
    udevd.wake([array.uuid], print)
    assert told == ([array.uuid] if there else [])
    udevd.wake([], print)
    assert len(told) == bool(there)
