"""What takes seconds to load is loaded in the background, while nothing is measured yet."""

import threading
from collections.abc import Callable

from autotune.problem.strategy import Problem, Strategy, StrategyFactory


class Loading:
    """A strategy's factory on its way; used as a factory, it waits until it is there.

    Loading takes a second, or twenty on a slow machine, and takes a processor for that. So it goes
    beside the warm-up, of which no figure is kept, and whoever measures waits for it before.
    """

    def __init__(self, load: Callable[[], StrategyFactory]) -> None:
        self._load = load
        self._factory: StrategyFactory | None = None
        self._error: BaseException | None = None
        # A run that is stopped meanwhile does not wait for it.
        self._thread = threading.Thread(target=self._run, name="loading", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._factory = self._load()
        except BaseException as error:
            self._error = error

    def look(self) -> None:
        """Raise what has gone wrong, if anything has by now: mostly a package is missing."""
        if self._error is not None:
            raise self._error

    def wait(self) -> StrategyFactory:
        """The factory, once it is loaded. Raise what went wrong."""
        self._thread.join()
        self.look()
        assert self._factory is not None
        return self._factory

    def __call__(self, problem: Problem) -> Strategy:
        return self.wait()(problem)
