"""What a design found, for programs; what people see is made of it."""

import shlex
import string
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.design.design import Result
from autotune.design.proof import Finalist
from autotune.design.rebuild import rebuild_s
from autotune.design.shape import Shape
from autotune.preflight.environment import environment, place
from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures
from autotune.store import TrialRecord


def document(result: Result, made: bool) -> dict[str, Any]:
    """Bytes, bytes/s, ns, seconds; estimates and ratios with their 95 % intervals."""
    workspace, finalists = result.workspace, result.proof.finalists
    lettered = zip(string.ascii_uppercase, finalists, strict=False)
    return {
        "kind": "design",
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "disks": [
            {"device": d.device, "bytes": d.size_bytes, "media": d.media.value}
            for d in workspace.disks
        ],
        "slice_bytes": workspace.slice_bytes,
        "workload": result.workload.name,
        "winner": result.winner.shape.setting,
        "default": result.space.default.setting,
        "proven": result.winner.gain is not None,
        "reason": result.winner.reason,
        "rounds": result.proof.rounds,
        "figures": [{"name": each.name, "kind": each.kind} for each in result.figures],
        "finalists": [_finalist(result, letter, each) for letter, each in lettered],
        "stopped": result.stopped,
        "trials": [_trial(record) for record in result.records],
        "seconds": result.seconds,
        "bytes_written": result.bytes_written,
        "commands": asdict(result.commands),
        "device": result.device,
        "made": result.device if made else None,
        "next": shlex.join(["autotune", "run", result.device, "--workload", result.workload_given]),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "environment": environment([]),
        **place(),
    }


def _finalist(result: Result, letter: str, each: Finalist) -> dict[str, Any]:
    disks, gain = len(result.workspace.disks), each.gain
    return {
        "letter": letter,
        "shape": str(each.shape),
        "setting": each.shape.setting,
        "capacity_bytes": each.shape.capacity_bytes(disks, result.workspace.each_bytes),
        "survives": each.shape.survives(disks),
        "gain": {
            "ratio": gain.ratio,
            "low": gain.low,
            "high": gain.high,
            "conclusion": gain.conclusion.value,
        }
        if gain
        else None,
        "kept": each.kept,
        "reason": each.reason,
        "figures": _figures(each.figures),
        "ceilings": {name: held.value for name, held in each.held.items()},
        "rebuild_seconds": rebuild_s(each.figures, result.workload.phases, result.workspace),
    }


def _trial(record: TrialRecord) -> dict[str, Any]:
    return {
        "role": record.role,
        "shape": str(Shape.of(record.requested)),
        "setting": dict(record.requested),
        "status": record.status.value,
        "reason": record.reason,
        "seconds": record.seconds,
        "figures": _figures(record.figures),
    }


def _figures(figures: Figures) -> dict[str, dict[str, float]]:
    return {name: _estimate(estimate) for name, estimate in figures.items()}


def _estimate(estimate: Estimate) -> dict[str, float]:
    low, high = estimate.interval
    return {"value": estimate.value, "low": low, "high": high}
