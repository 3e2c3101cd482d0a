"""What a run found, for programs: `run --json` prints it, and the store keeps it."""

import shlex
import sys
from pathlib import Path
from typing import Any

from autotune.knobs import ram_bytes
from autotune.preflight.environment import environment, made_of
from autotune.stats.verdict import Comparison
from autotune.tuning.long_load import LongLoad
from autotune.tuning.preparation import Preparation
from autotune.tuning.remarks import Remarks
from autotune.tuning.time_spent import MEASURING, Spent
from autotune.tuning.tune import Result


def whole_document(
    preparation: Preparation, result: Result, path: Path | None, spent: Spent
) -> dict[str, Any]:
    """What the store keeps: the result without the profile, which it has already, and what it was
    found with."""
    return {
        **result_document(result, path=path),
        "spent": spent_document(spent),
        "ram_bytes": ram_bytes(preparation.array, result.winner),
        "original_ram_bytes": ram_bytes(preparation.array, result.baseline),
        "not_measured": preparation.not_measured,
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "environment": {
            **made_of(preparation.array, (mount.fstype for mount in preparation.stack.mounts)),
            **environment([], preparation.array.root),
        },
    }


def result_document(
    result: Result, profile: dict[str, Any] | None = None, path: Path | None = None
) -> dict[str, Any]:
    """A result; rates in bytes/s, latencies in ns."""
    verdict = result.verdict
    return {
        "adopt": result.keep,
        "reason": result.reason,
        "winner": dict(result.winner),
        "baseline": dict(result.baseline),
        "proposed": dict(result.proposed),
        "gain": comparison_document(verdict.overall) if verdict else None,
        "figures": {
            figure.name: {
                "before": result.before[figure.name].value,
                "after": result.after[figure.name].value if figure.name in result.after else None,
                "ceiling": figure.limit(result.before),
                "change": comparison_document(verdict.figures[figure.name])
                if verdict and figure.name in verdict.figures
                else None,
            }
            for figure in result.figures
            if figure.name in result.before
        },
        "shares": [
            {
                "knob": share.knob,
                "before": share.before,
                "after": share.after,
                "ratio": share.gain.value,
                "low": share.gain.interval[0],
                "high": share.gain.interval[1],
                "needed": share.needed,
            }
            for share in result.shares
        ],
        "trials": result.trials,
        "searched": result.searched,
        "seconds": result.seconds,
        "bytes_written": result.bytes_written,
        "write_budget_bytes": result.write_budget,
        "saved_seconds": result.saved_s,
        "unsupported": result.unsupported,
        "drifts": result.drifts,
        "grown_stripes": result.grown_stripes,
        "pairs": result.pairs,
        "refused": [
            {
                "setting": dict(setting),
                "gain": comparison_document(each.verdict.overall) if each.verdict else None,
                "figures": {n: comparison_document(c) for n, c in each.verdict.figures.items()}
                if each.verdict
                else {},
                "pairs": each.pairs,
                "reason": each.reason,
            }
            for setting, each in result.refused
        ],
        "ceilings": {name: state.value for name, state in result.held.items()},
        "long_load": long_document(result.long),
        **words_document(result.words),
        "profile": profile,
        "profile_path": str(path) if path else None,
    }


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    return {
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "conclusion": comparison.conclusion.value,
    }


def long_document(long: LongLoad) -> dict[str, Any]:
    """What a long load showed; `left_out` says why there was none."""
    return {
        "seconds": long.seconds,
        "figures": {name: comparison_document(each) for name, each in long.figures.items()},
        "left_out": long.left_out,
    }


def words_document(words: Remarks) -> dict[str, Any]:
    nearest = words.nearest
    return {
        "stopped": words.stopped,
        "nearest": nearest
        and {
            "setting": dict(nearest.point.setting),
            "gain": nearest.point.gain.value,
            "spread": nearest.point.gain.spread,
            "figures": {name: each.value for name, each in nearest.point.figures.items()},
            "trials": list(nearest.point.trials),
            "obstacle": nearest.obstacle,
        },
        "notes": list(words.notes),
        "offers": [vars(offer) for offer in words.offers],
        "next": words.command,
    }


def spent_document(spent: Spent) -> dict[str, Any]:
    """In seconds: what was measuring, and everything else by kind."""
    return {
        "measured_seconds": spent.seconds[MEASURING],
        "overhead_seconds": dict(spent.overhead),
        "measured_share": spent.measured_share,
    }
