"""The JSON documents in fio's output, as they come."""

import contextlib
import json
import re

from autotune.errors import MeasurementError

MAX_OUTPUT_BYTES = 8 * 1024 * 1024

_OUTSIDE_A_STRING, _IN_A_STRING = re.compile(r'["}]|\{+'), re.compile(r'["\\]')


class Documents:
    """Cuts a stream of text into JSON documents, whatever stands between them.

    It looks at each character once, however small the pieces that the text comes in.
    """

    def __init__(self) -> None:
        self._text = ""
        self._seen = 0
        self._depth = 0
        self._quoted = False

    def feed(self, text: str) -> list[object]:
        """The documents that are complete with this text; what only looks like one is left out.
        Raise MeasurementError when what is pending grows past any sensible size."""
        self._text += text
        found: list[object] = []
        start = 0
        while (end := self._end()) is not None:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(self._text[self._text.index("{", start) : end]))
            start = end
        self._text, self._seen = self._text[start:], self._seen - start
        if len(self._text) > MAX_OUTPUT_BYTES:
            raise MeasurementError("fio's output never ends; check `fio --version`.")
        return found

    def _end(self) -> int | None:
        """Where the next document ends, or None if it is not there in full yet."""
        while self._seen < len(self._text):
            pattern = _IN_A_STRING if self._quoted else _OUTSIDE_A_STRING
            mark = pattern.search(self._text, self._seen)
            if mark is None:
                self._seen = len(self._text)
                break
            if mark[0] == "\\":
                # With the character that it escapes, which may not be there yet.
                if mark.end() == len(self._text):
                    self._seen = mark.start()
                    break
                self._seen = mark.end() + 1
                continue
            self._seen = mark.end()
            if mark[0][0] == "{":
                self._depth += len(mark[0])
            elif self._depth and mark[0] == '"':
                self._quoted = not self._quoted
            elif self._depth and mark[0] == "}":
                self._depth -= 1
                if self._depth == 0:
                    return self._seen
        return None
