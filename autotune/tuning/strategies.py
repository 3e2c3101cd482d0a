"""The search strategies that are installed, found by their entry points."""

from importlib.metadata import EntryPoint, entry_points

from autotune.errors import UsageError, closest
from autotune.problem.strategy import StrategyFactory

GROUP = "autotune.strategies"


def strategy_names() -> list[str]:
    """The strategies that are installed."""
    return sorted(entry.name for entry in entry_points(group=GROUP))


def find_strategy(name: str) -> EntryPoint:
    """A strategy by name, not loaded yet, which takes a second. Raise UsageError if there is
    none."""
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return entry
    names = strategy_names()
    hint = closest(name, names)
    raise UsageError(f'There is no strategy "{name}"{hint}; there are {", ".join(names)}.')


def load_strategy(entry: EntryPoint) -> StrategyFactory:
    """What makes the strategy. Raise UsageError if a library that it needs is not installed."""
    try:
        factory: StrategyFactory = entry.load()
    except ImportError as error:
        raise UsageError(
            f'The strategy "{entry.name}" needs the Python package {error.name}; install that '
            "beside autotune, or choose another strategy (--strategy bayes)."
        ) from None
    return factory
