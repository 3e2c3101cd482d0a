"""The portable profile that a run ends with."""

from datetime import UTC, datetime

from autotune.knobs import ram_bytes
from autotune.problem.profile import Evidence, FigureEvidence, LongEvidence, Profile
from autotune.problem.setting import Setting
from autotune.stats.verdict import Conclusion
from autotune.tuning.preparation import Preparation
from autotune.tuning.stored_problem import proven_on
from autotune.tuning.tune import Result


def settled(preparation: Preparation, result: Result) -> Setting:
    """The winner's values that differ from the baseline; all of what was given."""
    given = preparation.options.given
    if given is not None:
        return given.setting
    return {k: v for k, v in result.winner.items() if v != result.baseline[k]}


def make_profile(
    preparation: Preparation, result: Result, member_kib_s: int | None = None
) -> Profile:
    """The portable result of a winner that is to be kept. `member_kib_s`: how fast the slowest
    member reads in sequence, if that matters."""
    array, verdict, given = preparation.array, result.verdict, preparation.options.given
    assert verdict is not None
    changed = settled(preparation, result)
    ceilings = {f.name: f.limit(result.before) for f in result.figures}
    figures = {
        name: FigureEvidence(
            before=result.before[name].value,
            after=result.after[name].value,
            ratio=comparison.ratio,
            low=comparison.low,
            high=comparison.high,
            conclusion=comparison.conclusion.value,
            ceiling=ceilings[name],
        )
        for name, comparison in verdict.figures.items()
    }
    return Profile(
        name=given.name if given else f"{array.name}-{preparation.options.workload.name}",
        created=datetime.now(UTC),
        proven_on=proven_on(array, member_kib_s),
        workload=preparation.options.workload.name,
        knobs=dict(changed),
        before={name: result.baseline[name] for name in changed},
        ram_bytes=ram_bytes(array, result.winner),
        ram_budget_bytes=preparation.ram_budget_bytes,
        evidence=Evidence(
            confirmed=given is None or verdict.overall.conclusion is Conclusion.BETTER,
            gain=verdict.overall.ratio,
            low=verdict.overall.low,
            high=verdict.overall.high,
            trials=result.trials,
            seconds=result.seconds,
            figures=figures,
            long={
                name: LongEvidence(
                    seconds=result.long.seconds,
                    ratio=comparison.ratio,
                    low=comparison.low,
                    high=comparison.high,
                )
                for name, comparison in result.long.figures.items()
            },
        ),
    )
