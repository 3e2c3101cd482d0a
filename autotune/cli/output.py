"""Standard output that ends no command: nobody may read it, or it may have no room. Light."""

import io
import os
import sys


class Output(io.TextIOWrapper):
    """As the stream that it replaces, but a command whose words nobody takes does its work to the
    end: what it still has to say goes nowhere. `lost` is why."""

    lost: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or error
        # What is not written yet goes there too, so no later flush complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


def outlast_readers() -> None:
    """Have standard output be such a stream from now on."""
    before = sys.stdout
    try:
        number = before.fileno()
    except io.UnsupportedOperation:
        # In memory, of whoever calls this as a function.
        return
    if isinstance(before, io.TextIOWrapper):
        before.flush()
        # Not its buffer, which is closed together with it.
        buffer = os.fdopen(number, "wb", closefd=False)
        sys.stdout = Output(
            buffer, before.encoding, before.errors, line_buffering=before.line_buffering
        )


def loss() -> OSError | None:
    """Why what a command printed did not all arrive; None if it did."""
    return sys.stdout.lost if isinstance(sys.stdout, Output) else None
