"""What a design found, for programs."""

from dataclasses import asdict
from typing import Any

from autotune.design.design import Result
from autotune.design.proof import Finalist
from autotune.design.rebuild import rebuild_s
from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures
from autotune.report.design import next_command


def document(result: Result, made: bool) -> dict[str, Any]:
    """Bytes, bytes/s, ns, seconds; estimates and ratios with their 95 % intervals."""
    plot = result.plot
    return {
        "disks": [
            {"device": d.device, "bytes": d.size_bytes, "media": d.media.value} for d in plot.disks
        ],
        "slice_bytes": plot.slice_bytes,
        "workload": result.workload.name,
        "winner": result.winner.shape.setting,
        "default": result.space.default.setting,
        "proven": result.winner.gain is not None,
        "reason": result.winner.reason,
        "rounds": result.proof.rounds,
        "finalists": [_finalist(result, each) for each in result.proof.finalists],
        "stopped": result.stopped,
        "trials": [
            {
                "role": record.role,
                "setting": dict(record.requested),
                "status": record.status.value,
                "reason": record.reason,
                "seconds": record.seconds,
                "figures": _figures(record.figures),
            }
            for record in result.records
        ],
        "seconds": result.seconds,
        "bytes_written": result.bytes_written,
        "commands": asdict(result.orders),
        "made": result.device if made else None,
        "next": next_command(result),
    }


def _finalist(result: Result, each: Finalist) -> dict[str, Any]:
    disks, gain = len(result.plot.disks), each.gain
    return {
        "setting": each.shape.setting,
        "capacity_bytes": each.shape.capacity_bytes(disks, result.plot.each_bytes),
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
        "rebuild_seconds": rebuild_s(each.figures, result.workload.phases, result.plot),
    }


def _figures(figures: Figures) -> dict[str, dict[str, float]]:
    return {name: _estimate(estimate) for name, estimate in figures.items()}


def _estimate(estimate: Estimate) -> dict[str, float]:
    low, high = estimate.interval
    return {"value": estimate.value, "low": low, "high": high}
