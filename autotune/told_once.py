"""Work that may fail without ending anything, such as writing metrics."""

import contextlib
from collections.abc import Callable, Iterator

from autotune.errors import AutotuneError


class ToldOnce:
    """Work that is tried again and again. Its first failure is told; the next ones are not, until
    it has worked again."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice, self._told = notice, False

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Once. An AutotuneError is told and goes no further."""
        try:
            yield
        except AutotuneError as error:
            if not self._told:
                self._notice(str(error))
            self._told = True
        else:
            self._told = False
