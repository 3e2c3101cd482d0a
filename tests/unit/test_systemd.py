"""The unit that is shipped for the boot."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).parents[2] / "systemd/autotune-restore.service"
COMMAND = "/usr/local/bin/autotune"


def test_systemd_takes_the_unit_as_it_is(tmp_path: Path) -> None:
    # The command lies elsewhere here, and verify looks for it.
    autotune = Path(sys.executable).with_name("autotune")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(COMMAND, str(autotune)))
    if not shutil.which("systemd-analyze"):
        return
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if UNIT.stem in line]
    assert (done.returncode, ours) == (0, [])


def test_it_restores_once_the_filesystems_are_there() -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    unit, service = parser["Unit"], parser["Service"]
    assert unit["After"] == "local-fs.target"
    assert unit["ConditionDirectoryNotEmpty"] == "/var/lib/autotune/journal"
    assert (service["Type"], service["ExecStart"]) == ("oneshot", f"{COMMAND} restore")
    assert parser["Install"]["WantedBy"] == "multi-user.target"
