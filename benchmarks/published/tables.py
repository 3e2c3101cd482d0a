"""What was published, and how what the lab shows compares with it. Pure, but for reading that."""

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.panel.judge import Ratio, ratio

HERE = Path(__file__).parent
ARRAY, RECORD, MEMBERS = "array", "record_kib", "members' read_ahead_kb"
"""What is no setting of `autotune run`: the array itself, the size of a stream's records, and what
the member disks read ahead for readers of their own."""
NO_CHECK = "no check"
"""A value of a setting: as it is, and without a check."""
LEAST_KIB_S = 1000
ROUNDS = 4
ALIKE = 1.05
"""A published step of less than this is none."""
SAME = 1.1
"""So far an interval may reach if it is to show that two figures are the same."""

Value = int | str
Rounds = Mapping[str, Sequence[Mapping[str, float]]]
"""By value, as text: the figures of each round, in bytes/s and ns."""


@dataclass(frozen=True)
class Published:
    """One table. `figures`: by figure ("write.throughput") and value what was published, or "more"
    or "less" than the first value. `scale`: by how much the values are smaller in the lab. `busy`:
    somebody reads and writes at random all the while. `rounds`: how often each value is measured,
    more where noise would hide a small step. Where the setting is the array itself, each value is
    a level and a number of disks, and there is no scenario. `run`: options with which
    `autotune run` looks for the best value by itself."""

    name: str
    says: str
    setting: str
    values: tuple[Value, ...]
    figures: Mapping[str, Mapping[str, float | str]]
    scenario: str = ""
    busy: bool = False
    scale: int = 1
    rounds: int = ROUNDS
    note: str = ""
    run: str = ""

    @property
    def scenario_path(self) -> Path:
        return HERE / "arrays" / f"{self.scenario}.toml"

    def here(self, value: Value) -> Value:
        """The value that the lab's array gets."""
        if isinstance(value, str) or self.scale == 1:
            return value
        return max(value // self.scale, LEAST_KIB_S)


@dataclass(frozen=True)
class Step:
    """From one published value to the next: what was published and what the lab shows, each a
    factor or a word, and whether they agree."""

    figure: str
    before: str
    after: str
    published: float | str
    here: Ratio
    verdict: str


def tables() -> dict[str, Published]:
    """All of them, by name."""
    found = tomllib.loads((HERE / "tables.toml").read_text())
    known = {"says", "scenario", "setting", "values", "busy", "scale", "rounds", "note", "run"}
    return {
        name: Published(
            name,
            figures={figure: about[figure] for figure in about if figure not in known},
            **{**{k: v for k, v in about.items() if k in known}, "values": tuple(about["values"])},
        )
        for name, about in found.items()
    }


def steps(table: Published, rounds: Rounds) -> list[Step]:
    """Row by row of what was published."""
    found = []
    for figure, published in table.figures.items():
        first = str(table.values[0])
        rows = [first, *(v for v in map(str, table.values) if v in published and v != first)]
        for before, after in itertools.pairwise(rows):
            said = published[after]
            if not isinstance(said, str):
                start = published[before]
                assert not isinstance(start, str)
                said = said / start
            shown = ratio(*([_figure(r, figure) for r in rounds[v]] for v in (before, after)))
            found.append(Step(figure, before, after, said, shown, verdict(said, shown)))
    return found


def verdict(said: float | str, shown: Ratio) -> str:
    """ "confirmed", "contradicted", "not shown", or "no step" where there surely is none."""
    if not isinstance(said, str) and 1 / ALIKE < said < ALIKE:
        if shown.low > 1 / SAME and shown.high < SAME:
            return "confirmed"
        return "contradicted" if shown.low > ALIKE or shown.high < 1 / ALIKE else "not shown"
    if shown.low > 1 / ALIKE and shown.high < ALIKE:
        return "no step"
    up = said == "more" if isinstance(said, str) else said > 1
    if shown.low > 1 or shown.high < 1:
        return "confirmed" if up == (shown.low > 1) else "contradicted"
    return "not shown"


def _figure(shown: Mapping[str, float], figure: str) -> float:
    # Without a check, the same requests are those of the idle array.
    return shown.get(figure, shown.get(f"idle.{figure.partition('.')[2]}", 0.0))
