"""The panel's arrays, what is known of each, and where its results are kept."""

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from autotune.lab.scenario import Scenario, load
from autotune.problem.setting import Setting

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """An array of the panel; see panel.toml."""

    name: str
    scenario: str
    held_out: bool = False
    begins_at_best: bool = False
    settings: Setting = field(default_factory=dict)

    @property
    def scenario_path(self) -> Path:
        return HERE / "arrays" / f"{self.scenario}.toml"

    @property
    def best_path(self) -> Path:
        return HERE / "best" / f"{self.scenario}.json"

    @property
    def lab(self) -> Scenario:
        return load(str(self.scenario_path))

    @property
    def best(self) -> Setting | None:
        """The best setting that the long search found; None if there was none yet."""
        if not self.best_path.exists():
            return None
        found: dict[str, Any] = json.loads(self.best_path.read_text())
        best: Setting | None = found.get("best")
        return best

    @property
    def start(self) -> Setting:
        """What is set before the run. Raise UsageError if that is not known yet."""
        if self.begins_at_best and self.best is None:
            raise UsageError(
                f"{self.name} begins at the best setting of {self.scenario}, which nobody has "
                f"looked for yet; run `python -m benchmarks.panel --best --array {self.name}`."
            )
        return {**((self.best or {}) if self.begins_at_best else {}), **self.settings}


def entries() -> dict[str, Entry]:
    """Every array of the panel, by name."""
    index = tomllib.loads((HERE / "panel.toml").read_text())
    return {
        name: Entry(name, about.pop("scenario", name), **about) for name, about in index.items()
    }


def result_path(folder: Path, name: str, seed: int, time: str | None) -> Path:
    """A run with another time limit than the default is another result."""
    return folder / f"{name}-seed{seed}{f'-{time}' if time else ''}.json"
