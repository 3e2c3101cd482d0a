"""What was asked for, and what will be done: all that a run knows before it changes anything."""

from dataclasses import dataclass, field
from pathlib import Path

from autotune.knobs import DEFAULT, Knob, by_name, consistent
from autotune.measure.fio_command import Target
from autotune.measure.workload import Phase, Workload
from autotune.preflight import checks
from autotune.problem.ceilings import Ceiling, doubt
from autotune.problem.figure import Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.trial import Earlier
from autotune.stats.sequential import LEAST_PAIRS
from autotune.suggested import STATE_DIR
from autotune.system.array import Array
from autotune.system.memory import DEFAULT_RAM_SHARE
from autotune.system.stack import Stack
from autotune.system.underlying import Underlying

BASELINE_TRIALS = 2
BASELINE_EVERY = 6
"""After so many trials of the search the baseline comes back, so that a drift is seen."""
WHILE_MOVING = 2
"""After so many if it had moved the last time: how long that lasts is to be known."""
GIVEN = "given"
"""What a run that searches nothing has for a strategy in the store."""
DOUBTS = 4
"""At most so many trials are made of whether each change of a candidate is needed, without the
doubtful ones and with all of them in turn."""
LEAST_TRIALS = 1 + BASELINE_TRIALS + 1 + 2 * LEAST_PAIRS
"""The time of so many trials is needed to warm up, try one setting and prove it."""


@dataclass(frozen=True)
class Given:
    """A setting that comes from elsewhere, with the name that it has there."""

    name: str
    setting: Setting


@dataclass(frozen=True)
class Options:
    """What was asked for. `knobs` are those to tune, where the array has them. `ram_budget` is
    bytes (int) or a share of all memory (float), `write_budget` the bytes that a run may write in
    all, if there is a limit. With `given` nothing is searched: that setting is held against the
    original ones in turn, and the strategy is GIVEN."""

    device: str
    workload: Workload
    strategy: str = "bayes"
    trials: int = 20
    time_s: float = 1800.0
    ceilings: tuple[Ceiling, ...] = ()
    ram_budget: int | float = DEFAULT_RAM_SHARE
    scratch: Path | None = None
    destructive: str | None = None
    careful: bool | None = None
    seed: int = 0
    write_budget: int | None = None
    knobs: tuple[Knob, ...] = DEFAULT
    given: Given | None = None


@dataclass(frozen=True)
class Preparation:
    """Everything a run needs to know before it changes anything.

    `phases` can be measured here, `left_out` cannot (they write, and there is nowhere to write
    to). `scratch` is the folder for the scratch file, if phases write and the array has one.
    `underlying` is what that lies on. `live` is the real sync that is under way and is tuned as it
    runs ("recover", "resync"), or "".
    `earlier` is what earlier runs showed. `user` is what has the device itself open, such as a
    virtual machine, if nothing is mounted. `neighbour` is an array in use on the same disks.
    """

    options: Options
    array: Array
    stack: Stack
    findings: tuple[checks.PreflightFinding, ...]
    knobs: tuple[Knob, ...]
    baseline: Setting
    choices: dict[str, tuple[Value, ...]]
    hints: tuple[Setting, ...]
    ram_budget_bytes: int
    phases: tuple[Phase, ...]
    left_out: tuple[Phase, ...]
    scratch: Path | None
    careful: bool
    figures: tuple[Figure, ...] = field(default=())
    live: str = ""
    earlier: tuple[Earlier, ...] = ()
    underlying: Underlying = field(default_factory=Underlying)
    user: str = ""
    neighbour: str = ""
    no_place: str = ""
    """Why a filesystem that is mounted from the array is not written to; "" if one is."""
    state_dir: Path = STATE_DIR
    left_alone: str = ""
    """Which settings stay as they are, and why, in sentences; "" if none do."""
    costs: dict[tuple[str, Value], int] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The RAM of each value that was asked for."""

    @property
    def in_use(self) -> bool:
        """Whether anybody may feel a run."""
        return self.stack.in_use or bool(self.user)

    @property
    def why_left_out(self) -> str:
        """What the phases that are left out lack."""
        if self.live:
            return "the array is never idle"
        if self.no_place:
            return self.no_place
        if self.stack.mounts:
            return "no filesystem on the array is mounted writable"
        return "no filesystem on the array is mounted"

    @property
    def not_measured(self) -> str:
        """Which phases are left out, why, and what to do; "" if none are."""
        if not self.left_out:
            return ""
        names = ", ".join(phase.name for phase in self.left_out)
        todo = "" if self.live else " To measure writes, mount a filesystem that is on the array"
        if todo and self.stack.writable:
            todo = " To measure writes, name a folder on the array with --scratch"
        if todo and not self.in_use:
            todo += (
                f"; or, if all data on the array may be lost, use --destructive {self.array.device}"
            )
        return f"Not measured: {names}, since {self.why_left_out}.{todo}{'.' if todo else ''}"

    @property
    def said_first(self) -> tuple[str, ...]:
        """What a user should know as the run starts."""
        not_measured = "" if self.live else self.not_measured
        texts = [self.left_alone, not_measured, *map(doubt, self.options.ceilings)]
        return tuple(text for text in texts if text)

    def allowed(self, setting: Setting) -> bool:
        """The exact filter: inside the RAM budget, and values that go together."""
        if sum(self._cost(name, value) for name, value in setting.items()) > self.ram_budget_bytes:
            return False
        return consistent(self.array, setting) is None

    def _cost(self, name: str, value: Value) -> int:
        """A strategy asks for thousands of settings before it proposes one, and some knobs look
        through the folders of each disk's queues."""
        if (name, value) not in self.costs:
            self.costs[name, value] = by_name(name).ram_bytes(self.array, value)
        return self.costs[name, value]

    @property
    def reads(self) -> Target:
        """Loads that only read go over the raw array: nothing is destroyed, and its size keeps
        them out of the page cache."""
        return Target(Path(self.array.device), self.array.size_bytes)
