"""An array as `autotune show` prints it."""

from pathlib import Path

import fake_sysfs
from rich.console import Console

from autotune.knobs import DEFAULT
from autotune.report.show import as_data, render
from autotune.system.array import find_array


def test_what_a_default_run_tries_is_told_from_what_all_knobs_add(tmp_path: Path) -> None:
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    names = {knob.name for knob in DEFAULT}
    shown = as_data(array)["knobs"]
    assert {name for name, each in shown.items() if each["by_default"]} == names
    assert len(shown) > len(names)
    console = Console(width=80)
    with console.capture() as captured:
        render(array, console)
    first, more = captured.get().split("with --knobs all, too:")
    assert all(f"\n{name} " in first for name in names)
    assert all(f"\n{name} " in more for name in shown if name not in names)
