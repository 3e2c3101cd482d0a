"""Reports of stored runs, and of made-up ones: whose array changes, whose texts are code."""

import json
import shutil
from pathlib import Path
from typing import Any

import synthetic_run
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.problem.trial import Status
from autotune.store.database import Store

LAB_RUN = Path(__file__).parent / "report/lab-run"
NASTY = "</p><script>alert(1)</script>"


def asked(state: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--state-dir", str(state)])
    assert done.exit_code == 0, done.output
    return done.stdout


def documents(state: Path, *runs: str) -> list[dict[str, Any]]:
    return list(json.loads(asked(state, "report", *runs, "--json")))


def from_the_lab(folder: Path) -> Path:
    """The state folder of a real run, to be opened."""
    return Path(shutil.copytree(LAB_RUN, folder / "lab-run"))


def drifting(state: Path, **ceilings: float) -> dict[str, Any]:
    """A run whose array became twice as slow to answer on the way, under these ceilings (ms)."""
    limits = {name: ms * synthetic_run.MS for name, ms in ceilings.items()}
    store = Store(state)
    run = store.start_run("u", "/dev/md0", "print", synthetic_run.problem(**limits))
    for number, role, stripes, write, p99_ms in (
        *((1, "baseline", 256, 100, 40), (2, "baseline", 256, 100, 40)),
        *((3, "search", 1024, 150, 50), (4, "baseline", 256, 100, 80)),
        *((5, "search", 4096, 180, 100), (6, "baseline", 256, 100, 80)),
    ):
        figures = synthetic_run.figures(write, 0.3 * write, 100, p99_ms)
        store.add_trial(
            run, synthetic_run.trial(number, role, {"stripe_cache_size": stripes}, figures)
        )
    aborted = synthetic_run.trial(7, "search", {"sync_speed_max": 5000}, {}, (), Status.ABORTED)
    store.add_trial(run, aborted)
    store.finish_run(run, "done", "nothing looked better", None, {"figures": {}})
    (found,) = documents(state, "1")
    return found


def nasty(state: Path) -> None:
    """Every text that comes from elsewhere tries to be more than text."""
    store = Store(state)
    problem = synthetic_run.problem()
    problem["workload"] = {"name": NASTY, "phases": [{"name": NASTY}]}
    problem["array"]["kernel"] = NASTY
    run = store.start_run("u", f"/dev/{NASTY}", "print", problem)
    store.add_trial(run, synthetic_run.baseline(1))
    store.add_trial(run, synthetic_run.baseline(2))
    said = {
        **{"command": NASTY, "environment": {NASTY: NASTY}, "notes": [NASTY], "figures": {}},
        **{"next": NASTY, "stopped": NASTY, "drifts": {"$x$": 2.0}, "offers": [{"text": NASTY}]},
        **{"not_measured": NASTY, "long_load": {"left_out": NASTY, "figures": {}}},
        "shares": [
            {
                **{"knob": f"$\\frac{NASTY}", "before": NASTY, "after": "\x1b[31m"},
                **{"ratio": 1.1, "low": 1.0, "high": 1.2, "needed": True},
            }
        ],
    }
    store.finish_run(run, "done", NASTY, None, said)
