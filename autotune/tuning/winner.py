"""What becomes of a winner: its profile, and how it stays in force."""

from itertools import chain, count
from pathlib import Path

from autotune.deploy.apply import with_those_in_force
from autotune.deploy.exported_script import refuse_over
from autotune.deploy.in_force import refuse_damaged
from autotune.deploy.undo import not_noted, record_persisted
from autotune.measure.member_speed import member_kib_s
from autotune.preflight.state_folder import may_go_first
from autotune.problem.profile import Profile
from autotune.safety.applied import keep_applied, set_over
from autotune.safety.apply import apply, follow_again
from autotune.safety.journal import Journal
from autotune.safety.watch import Watch
from autotune.system import sync
from autotune.system.array import Array
from autotune.system.stack import read_stack
from autotune.tuning.preparation import Preparation
from autotune.tuning.proven_profile import make_profile, settled
from autotune.tuning.reporter import Reporter
from autotune.tuning.tune import Result


def prepare_to_keep(array: Array, state_dir: Path, reporter: Reporter) -> None:
    """Raise RefusalError if what is in force now would be taken for the original; what udev has
    set is recorded with what was there before, as far as that is known."""
    refuse_over(array)
    refuse_damaged(array, state_dir)
    for text in (*may_go_first(array, read_stack(array), state_dir), *not_noted(array, state_dir)):
        reporter.notice(text)
    record_persisted(array, state_dir)


def free_file(path: Path) -> Path:
    """This path, or one like it that is not taken: a new store counts its runs from 1 again."""
    also = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(each for each in chain((path,), also) if not each.exists())


def profile_of(preparation: Preparation, result: Result, watch: Watch, state_dir: Path) -> Profile:
    """The profile of a winner that is kept, with how fast the members are if that matters."""
    speeds = set(sync.SPEEDS) & set(settled(preparation, result))
    rate = member_kib_s(preparation.array, watch) if speeds else None
    return with_those_in_force(
        make_profile(preparation, result, rate),
        preparation.array,
        result.winner,
        result.baseline,
        state_dir,
    )


def tell_replaced(
    preparation: Preparation,
    profile: Profile,
    journal: Journal,
    state_dir: Path,
    reporter: Reporter,
) -> None:
    """Tell of values that a person has set over an earlier profile, which this one replaces. What
    the array has now are a trial's."""
    knobs = [knob for knob in preparation.knobs if knob.name in profile.knobs]
    files = [path for knob in knobs for path in knob.paths(preparation.array)]
    for text in set_over(preparation.array, files, journal.record.originals, state_dir):
        reporter.notice(text)


def leave_in_force(
    preparation: Preparation,
    result: Result,
    profile: Profile,
    journal: Journal,
    watch: Watch,
    state_dir: Path,
) -> None:
    """Apply the winner to stay until the next reboot."""
    # A script may have begun when the run did.
    refuse_over(preparation.array)
    # A Ctrl-C of the last seconds, too.
    watch()
    watch.look()
    watch.expect(None)
    apply(preparation.array, preparation.knobs, result.winner, journal)
    left = [knob for knob in preparation.knobs if knob.name not in profile.knobs]
    follow_again(preparation.array, left, journal)
    keep_applied(profile, preparation.array, journal, state_dir)
