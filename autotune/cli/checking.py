"""A check that the command starts: what is seen of it, stored and told while it goes on."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune.background import Background
from autotune.checking import stored
from autotune.checking.check import check as check_array
from autotune.checking.metrics import CheckMetricsFile
from autotune.checking.options import CheckOptions
from autotune.checking.record import CheckRecord
from autotune.cli.guarding import on_terminal
from autotune.cli.terminal import notice
from autotune.guard.goals import Goals
from autotune.guard.window import Window
from autotune.report import check as report
from autotune.service.config import Config, Event
from autotune.service.notify import log, notify
from autotune.system.array import Array
from autotune.system.sync import FLOOR_KIB


@dataclass(frozen=True)
class CheckArguments:
    """What the command line and the configuration say. `scheduled`: as the timer does it."""

    array: Array
    settings: Config
    goals: Goals
    state_dir: Path
    anew: bool
    scheduled: bool


def check(arguments: CheckArguments) -> tuple[CheckRecord | None, str]:
    """Check; as `checking.check`, with a line on a terminal, metrics and the command for events."""
    array, care = arguments.array, arguments.settings.care(arguments.array.uuid)
    file = arguments.settings.metrics
    metrics = CheckMetricsFile(Path(file.textfile) if file else None, array, notice)
    history = stored.path_of(arguments.state_dir, array.uuid)
    hooks: list[threading.Thread] = []

    def tell(event: Event) -> Callable[[str], None]:
        def run_hook(text: str) -> None:
            log(event, array.device, array.uuid, text)
            if fault := notify(event, array.device, array.uuid, text, arguments.settings.notify):
                notice(fault)

        def told(text: str) -> None:
            background(lambda: notice(text))
            # The throttle has to be moved meanwhile.
            hooks.append(threading.Thread(target=run_hook, args=(text,)))
            hooks[-1].start()

        return told

    with on_terminal(array.device, arguments.goals.ceiling_ns, is_check=True) as display:
        background, said = Background(), ""

        def on_window(window: Window) -> None:
            nonlocal said
            said = ""
            metrics.write(history, True, window.share, window.p99_ns)
            if display is not None:
                display.window(window)

        def waiting(why: str, share: float) -> None:
            nonlocal said
            if why != said:
                metrics.write(history, False)
            said = why
            if display is not None:
                display.waits(why, share)

        options = CheckOptions(
            goals=arguments.goals,
            state_dir=arguments.state_dir,
            hottest_c=care.check_temperature,
            on_window=lambda window: background(lambda: on_window(window)),
            waiting=lambda why, share: background(lambda: waiting(why, share)),
            notice=lambda text: background(lambda: notice(text)),
            unheld=tell("unheld"),
            mismatched=lambda record: tell("mismatched")(report.mismatched(array.device, record)),
            least_kib=(care.least or FLOOR_KIB * 1024) / 1024,
            window=care.parsed_window if arguments.scheduled else None,
            patient=arguments.scheduled,
            anew=arguments.anew,
        )
        try:
            return check_array(array.device, options)
        finally:
            try:
                background.close()
            finally:
                metrics.end(history)
                for hook in hooks:
                    hook.join()
