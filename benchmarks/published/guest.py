"""In the lab: measure one table's values in turn, and write what each round showed."""

import argparse
import json
from pathlib import Path

from autotune.knobs import by_name, for_array, read_setting
from autotune.problem.setting import Setting
from autotune.system.array import find_array
from benchmarks.panel.judge import Judge
from benchmarks.published.tables import NO_CHECK, Published, tables

DEVICE, MOUNT = "/dev/md0", Path("/mnt/md0")
ROUNDS = 4


def measured(table: Published) -> dict[str, list[dict[str, float]]]:
    """What each value showed in each round, the rounds to and fro."""
    array = find_array(DEVICE)
    judge, start = Judge(array, MOUNT), read_setting(array, for_array(array))
    phases = {figure.partition(".")[0] for figure in table.figures}
    found: dict[str, list[dict[str, float]]] = {str(value): [] for value in table.values}
    for number in range(ROUNDS):
        values = table.values if number % 2 == 0 else table.values[::-1]
        for value in values:
            here = table.here(value)
            setting: Setting = start
            if here != NO_CHECK:
                assert by_name(table.setting).valid(array, here) is None
                setting = {**start, table.setting: here}
            shown: dict[str, float] = {}
            for phase in sorted(phases):
                shown |= judge.measure("idle" if here == NO_CHECK else phase, setting)
            found[str(value)].append(shown)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published.guest")
    parser.add_argument("table", choices=tables())
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.write_text(json.dumps(measured(tables()[chosen.table]), indent=1) + "\n")


if __name__ == "__main__":
    main()
