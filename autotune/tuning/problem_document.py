"""A run's problem as the store keeps it (`results.stored_run` reads it)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from autotune.problem.figure import Figure
from autotune.problem.profile import ProvenOn
from autotune.system.array import Array
from autotune.tuning.prepare import Preparation


def proven_on(array: Array, member_kib_s: int | None = None) -> ProvenOn:
    """The class of array that a run's answer holds for. `member_kib_s`: how fast the slowest
    member reads in sequence, where that matters."""
    return ProvenOn(
        level=array.level,
        members=array.raid_disks,
        chunk_kib=array.chunk_bytes // 1024,
        media=array.media.value,
        kernel=array.kernel,
        uuid=array.uuid,
        member_kib_s=member_kib_s,
    )


def problem_document(
    preparation: Preparation, figures: Sequence[Figure], written_bytes: int = 0
) -> dict[str, Any]:
    """What the store keeps of the problem; `figures` with what is known of their ceilings,
    `written_bytes` what the run has written until now."""
    options, array = preparation.options, preparation.array
    proof = proven_on(array)
    knobs = {
        knob.name: {
            "choices": list(preparation.choices[knob.name]),
            "ram_bytes": [knob.ram_bytes(array, value) for value in preparation.choices[knob.name]],
            "moves": [
                figure.name
                for phase in preparation.phases
                for figure in phase.figures()
                if knob.moves(phase, figure.name.partition(".")[2])
            ],
        }
        for knob in preparation.knobs
    }
    return {
        "array": {"name": array.name, **proof.model_dump(mode="json", exclude_none=True)},
        "workload": options.workload.model_dump(mode="json"),
        "strategy": options.strategy,
        "trials": options.trials,
        "seed": options.seed,
        "careful": preparation.careful,
        "ram_budget_bytes": preparation.ram_budget_bytes,
        "write_budget_bytes": options.write_budget,
        "written_bytes": written_bytes,
        "destructive": options.destructive is not None,
        "live": preparation.live or "none",
        "ceilings": [dataclasses.asdict(ceiling) for ceiling in options.ceilings],
        "baseline": dict(preparation.baseline),
        "knobs": knobs,
        "left_out": [phase.name for phase in preparation.left_out],
        "figures": [dataclasses.asdict(figure) for figure in figures],
    }
