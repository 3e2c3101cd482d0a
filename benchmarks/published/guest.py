"""In the lab: measure one table's values in turn, and write what each round showed."""

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autotune.knobs import by_name, for_array, read_setting
from autotune.problem.setting import Setting
from autotune.system.array import Array, find_array
from benchmarks.forecast.rebuild import Foreground, rebuild
from benchmarks.panel.judge import Judge
from benchmarks.published.tables import (
    ARRAY,
    MEMBERS,
    NO_CHECK,
    RECORD,
    Published,
    Value,
    tables,
)

DEVICE, MOUNT = "/dev/md0", Path("/mnt/md0")

USERS = (
    *("--name=users", "--size=256M", "--rw=randrw", "--bs=64k", "--direct=1"),
    *("--ioengine=libaio", "--iodepth=4", "--time_based=1", "--runtime=3600", "--thread=1"),
)


@contextlib.contextmanager
def users() -> Iterator[None]:
    """Reads and writes at random, as many as the array does."""
    words = ("fio", "--output=/dev/null", f"--filename={MOUNT}/users", *USERS)
    with subprocess.Popen(words) as fio:
        try:
            yield
        finally:
            fio.terminate()


def rebuilds(table: Published) -> list[dict[str, float]]:
    """How long a rebuild takes, each time, in seconds."""
    array = find_array(DEVICE)
    nobody = Foreground(array, 0)
    return [{"rebuild.time": rebuild(array, "system", nobody)[0]} for _ in range(table.rounds)]


def asked(array: Array, name: str, here: Value, start: Setting) -> tuple[Judge, Setting]:
    """Who measures a value, and under which setting."""
    if name == RECORD:
        return Judge(array, MOUNT, int(here)), start
    if name == MEMBERS:
        for disk in array.disks:
            Path(f"/sys/block/{disk}/queue/read_ahead_kb").write_text(str(here))
        return Judge(array, MOUNT), start
    if here == NO_CHECK:
        return Judge(array, MOUNT), start
    assert by_name(name).valid(array, here) is None
    return Judge(array, MOUNT), {**start, name: here}


def measured(table: Published) -> dict[str, list[dict[str, float]]]:
    """What each value showed in each round, the rounds to and fro."""
    array = find_array(DEVICE)
    start = read_setting(array, for_array(array))
    phases = {figure.partition(".")[0] for figure in table.figures}
    found: dict[str, list[dict[str, float]]] = {str(value): [] for value in table.values}
    beside = users if table.busy else contextlib.nullcontext
    for number in range(table.rounds):
        values = table.values if number % 2 == 0 else table.values[::-1]
        for value in values:
            here = table.here(value)
            judge, setting = asked(array, table.setting, here, start)
            shown: dict[str, float] = {}
            for phase in sorted(phases):
                with beside():
                    shown |= judge.measure("idle" if here == NO_CHECK else phase, setting)
            found[str(value)].append(shown)
    return found


def searched(table: Published) -> dict[str, Any]:
    """What `autotune run` finds by itself: its points, and what it keeps."""
    beside = users if table.busy else contextlib.nullcontext
    with TemporaryDirectory() as state, beside():
        autotune = (sys.executable, "-m", "autotune")
        words = ("run", DEVICE, *table.run.split(), "--state-dir", state)
        subprocess.run((*autotune, *words), check=True)
        report = (*autotune, "report", "1", "--json", "--state-dir", state)
        (found,) = json.loads(subprocess.run(report, check=True, stdout=subprocess.PIPE).stdout)
    return {name: found[name] for name in ("points", "changes", "gain", "seconds")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.guest")
    parser.add_argument("table", choices=tables())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", action="store_true", help="what `autotune run` finds by itself")
    chosen = parser.parse_args()
    table = tables()[chosen.table]
    if chosen.run:
        found: object = searched(table)
    else:
        found = rebuilds(table) if table.setting == ARRAY else measured(table)
    chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
