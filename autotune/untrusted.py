"""Documents that may come from strangers: read within limits, faults reported in one line."""

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_TYPED_BYTES = 64 * 1024
"""Of a file that people write."""
MOST_KEPT_BYTES = 1 << 20
"""Of a file that programs write."""
MAX_LINE = 4096
"""The time that tomllib takes for a dotted key grows with the square of its parts: 20 s for one
that fills 64 KiB."""
MAX_FAULT = 300
NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a document trips over that is damaged, or of another version."""
_IS_TYPE = re.compile(r"(constrained|function|literal|nullable)\b")
_IN_PLAIN = {
    "extra_forbidden": "there is no such setting",
    "tuple_type": "it has to be a list",
    "list_type": "it has to be a list",
    "missing": "it is missing",
    "string_type": "it has to be a text",
    "bool_type": "it has to be true or false",
    "bool_parsing": "it has to be true or false",
    "int_type": "it has to be a whole number",
    "int_parsing": "it has to be a whole number",
    "int_from_float": "it has to be a whole number",
    "float_type": "it has to be a number",
    "float_parsing": "it has to be a number",
    "finite_number": "it has to be a number",
    "model_type": "it has to be a table",
    "dict_type": "it has to be a table",
    "greater_than_equal": "it has to be {ge} or more",
    "greater_than": "it has to be more than {gt}",
    "less_than_equal": "it has to be {le} or less",
    "less_than": "it has to be less than {lt}",
    "literal_error": "it has to be {expected}",
    "string_pattern_mismatch": "it is no value that can stand there",
    "string_too_long": "it has to have {max_length} characters or fewer",
    "too_long": "it has to have {max_length} entries or fewer",
    "too_short": "it has to have {min_length} entries or more",
    "union_tag_invalid": "there is no {discriminator} {tag!r}; there are {expected_tags}",
    "union_tag_not_found": "{discriminator} is not there",
}


def read_file(path: Path, most_bytes: int) -> bytes:
    """A plain file. OSError if it cannot be read, ValueError if it is larger, or no file at all:
    a FIFO would be waited for without end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("is no plain file")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"is larger than {most_bytes // 1024} KiB")
    return data


def read_text(path: Path, most_bytes: int, what: str) -> str:
    """The text of a plain file. Raise UsageError that calls it `what` if that cannot be had."""
    try:
        return read_file(path, most_bytes).decode("utf-8", "replace")
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    except ValueError as error:
        fault = str(error)
    raise UsageError(f'{what} "{plain(str(path))}" {fault}.')


def read_toml(text: str) -> dict[str, Any]:
    """A TOML document. Raise ValueError with the fault."""
    if any(len(line) > MAX_LINE for line in text.splitlines()):
        raise ValueError(f"a line is longer than {MAX_LINE} characters")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def first_fault(error: "ValidationError") -> str:
    """The place and the kind of the first thing that is wrong with a document."""
    faults = error.errors(include_url=False, include_input=False)
    where = _place(faults[0]["loc"])
    here = [fault for fault in faults if _place(fault["loc"]) == where]
    # Where a number or a text may stand, what is wrong with the text is said of a text.
    fault = next((f for f in here if not f["type"].endswith("_type")), here[0])
    message = in_plain(fault["type"], fault["msg"], fault.get("ctx", {}))
    return plain(f"{where}: {message}" if where else message).rstrip(".")


def _place(parts: Iterable[int | str]) -> str:
    """Without parts such as "constrained-int", which name pydantic's types."""
    return ".".join(str(part) for part in parts if not _IS_TYPE.match(str(part)))


def in_plain(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """What pydantic says is wrong, in plain words as far as there are some for that kind."""
    text = _IN_PLAIN.get(kind)
    return message.removeprefix("Value error, ") if text is None else text.format(**context)


def printable(text: str) -> str:
    """The text. Raise ValueError if it holds what moves a terminal's cursor, ends a line, or
    reverses the text beside it."""
    if not text.isprintable():
        raise ValueError("it holds characters that cannot be printed")
    return text


def plain(text: str) -> str:
    """Text that is safe to show on a terminal: no control characters, and not too long."""
    return harmless(text if len(text) <= MAX_FAULT else text[:MAX_FAULT] + "…")


def harmless(text: str) -> str:
    """Text without control characters, however long."""
    return "".join(c if c.isprintable() else "?" for c in text)


def harmless_throughout(value: Any) -> Any:
    """A document of JSON with texts that move no cursor, wherever they came from."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return {harmless_throughout(key): harmless_throughout(v) for key, v in value.items()}
    return [harmless_throughout(v) for v in value] if isinstance(value, list | tuple) else value
