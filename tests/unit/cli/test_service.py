"""What is said of units that nobody has installed."""

import pytest
import typer

from autotune.cli import doctor, service
from autotune.service import install


@pytest.mark.parametrize(
    ("states", "said"), [(("missing", "missing"), True), (("missing", "changed"), False)]
)
def test_units_that_are_not_installed_are_called_optional(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    states: tuple[str, ...],
    said: bool,
) -> None:
    units = {f"/etc/systemd/system/{i}": state for i, state in enumerate(states)}
    monkeypatch.setattr(install, "status", lambda: units)
    with pytest.raises(typer.Exit):
        service.status(as_json=False)
    assert ("`autotune service install` adds them" in capsys.readouterr().out) is said
    assert (doctor._environment([])["units"] == "not installed (optional)") is said
