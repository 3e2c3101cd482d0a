"""Which settings a strategy may propose."""

from pathlib import Path

import pytest
from fake_run import Machine

from autotune.knobs.stripe_cache import StripeCacheSize
from autotune.problem.setting import Value
from autotune.system.array import Array


def test_what_a_value_costs_is_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A strategy asks for thousands of settings before it proposes one."""
    preparation = Machine(tmp_path, monkeypatch).preparation("recipe")
    asked: list[Value] = []

    def ram_bytes(self: StripeCacheSize, array: Array, value: Value) -> int:
        asked.append(value)
        return 0 if value == 256 else preparation.ram_budget_bytes + 1

    monkeypatch.setattr(StripeCacheSize, "ram_bytes", ram_bytes)
    for _ in range(3):
        assert preparation.allowed({"stripe_cache_size": 256})
        assert not preparation.allowed({"stripe_cache_size": 512})
    assert asked == [256, 512]
