"""Strategies that a signal ends while they think, as the watch does while something is measured."""

from collections.abc import Sequence

from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Strategy, StrategyFactory, Weighed
from autotune.problem.trial import Trial
from autotune.safety.signals import Signals


class Interruptible:
    """A strategy's factory, for a run that is to hear signals.

    With all settings a model may take minutes on a slow machine. What the last trial has set is in
    force meanwhile, and systemd kills what does not end within 90 s.
    """

    def __init__(self, factory: StrategyFactory, signals: Signals) -> None:
        self._factory, self._signals = factory, signals

    def __call__(self, problem: Problem) -> Strategy:
        with self._signals.at_once():
            return _Thinker(self._factory(problem), self._signals)


class _Thinker:
    """Each method is that of the strategy; SignalledError at once if a signal asks for the end."""

    def __init__(self, strategy: Strategy, signals: Signals) -> None:
        self._strategy, self._signals = strategy, signals

    def ask(self) -> Setting | None:
        with self._signals.at_once():
            return self._strategy.ask()

    def tell(self, trial: Trial) -> None:
        with self._signals.at_once():
            self._strategy.tell(trial)

    def recommend(self) -> Recommendation:
        with self._signals.at_once():
            return self._strategy.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        with self._signals.at_once():
            return self._strategy.weigh(trials, setting, doubtful)
