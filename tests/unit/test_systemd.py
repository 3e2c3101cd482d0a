"""The units that are shipped."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "systemd"
UNIT = UNITS / "autotune-restore.service"
GUARD = UNITS / "autotune-guard@.service"
COMMAND = "/usr/local/bin/autotune"


@pytest.mark.parametrize(
    ("unit", "name"), [(UNIT, UNIT.name), (GUARD, "autotune-guard@md0.service")]
)
def test_systemd_takes_the_unit_as_it_is(tmp_path: Path, unit: Path, name: str) -> None:
    # The command lies elsewhere here, and verify looks for it.
    autotune = Path(sys.executable).with_name("autotune")
    copy = tmp_path / name
    copy.write_text(unit.read_text().replace(COMMAND, str(autotune)))
    if not shutil.which("systemd-analyze"):
        return
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if copy.stem in line]
    assert (done.returncode, ours) == (0, [])


def parsed(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    return parser


def test_a_guard_waits_for_as_long_as_its_array_is_there() -> None:
    parser = parsed(GUARD)
    assert parser["Unit"]["BindsTo"] == parser["Install"]["WantedBy"] == "dev-%i.device"
    service = parser["Service"]
    assert service["ExecStart"].startswith(f"{COMMAND} guard /dev/%i --wait --p99-ceiling ")
    # It writes below /sys, and its journal and lock have to be where every command looks.
    assert "ProtectKernelTunables" not in service
    assert service["StateDirectory"] == service["RuntimeDirectory"] == "autotune"


def test_it_restores_once_the_filesystems_are_there() -> None:
    parser = parsed(UNIT)
    unit, service = parser["Unit"], parser["Service"]
    assert unit["After"] == "local-fs.target"
    assert unit["ConditionDirectoryNotEmpty"] == "/var/lib/autotune/journal"
    assert (service["Type"], service["ExecStart"]) == ("oneshot", f"{COMMAND} restore")
    assert parser["Install"]["WantedBy"] == "multi-user.target"
