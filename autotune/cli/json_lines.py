"""Standard error for journals: each line that is said becomes an object."""

import io
import json
import threading
import time
from typing import TextIO


class JsonLines(io.TextIOBase):
    """A stream that writes `{"kind": "notice", "time_s": …, "text": …}` for each line, whoever says
    it: a notice, an error, or a library. Nobody watches it, so nothing is drawn. Threads do not mix
    their lines."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._part = threading.local()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._part.text = (getattr(self._part, "text", "") + text).split("\n")
        for line in lines:
            if said := line.removeprefix("autotune: ").strip():
                document = {"kind": "notice", "time_s": round(time.time(), 3), "text": said}
                self._stream.write(f"{json.dumps(document)}\n")
                self._stream.flush()
        return len(text)

    def flush(self) -> None:
        self._stream.flush()
