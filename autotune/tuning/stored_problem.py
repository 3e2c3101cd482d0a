"""A run's problem as the store keeps it."""

from collections.abc import Sequence

from autotune.knobs import Knob
from autotune.preflight.environment import place
from autotune.problem.figure import Figure
from autotune.problem.profile import ProvenOn
from autotune.results.stored_run import StoredArray, StoredKnob, StoredProblem, StoredWorkload
from autotune.system.array import Array
from autotune.tuning.preparation import Preparation
from autotune.tuning.relevance import figures_moved


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


def stored_problem(
    preparation: Preparation, figures: Sequence[Figure], written_bytes: int = 0
) -> StoredProblem:
    """What the store keeps of the problem; `figures` with what is known of their ceilings,
    `written_bytes` what the run has written until now."""
    options, array = preparation.options, preparation.array
    return StoredProblem(
        array=StoredArray(name=array.name, **proven_on(array).model_dump()),
        workload=StoredWorkload.model_validate(options.workload.model_dump(mode="json")),
        strategy=options.strategy,
        given=options.given.name if options.given else "",
        trials=options.trials,
        seed=options.seed,
        careful=preparation.careful,
        ram_budget_bytes=preparation.ram_budget_bytes,
        write_budget_bytes=options.write_budget,
        written_bytes=written_bytes,
        destructive=options.destructive is not None,
        live=preparation.live or "none",
        ceilings=options.ceilings,
        baseline=preparation.baseline,
        knobs={knob.name: _stored_knob(preparation, knob) for knob in preparation.knobs},
        left_out=tuple(phase.name for phase in preparation.left_out),
        **place(),
        figures=tuple(figures),
    )


def _stored_knob(preparation: Preparation, knob: Knob) -> StoredKnob:
    choices = preparation.choices[knob.name]
    return StoredKnob(
        choices=choices,
        ram_bytes=tuple(knob.ram_bytes(preparation.array, value) for value in choices),
        moves=figures_moved(knob, preparation.phases),
    )
