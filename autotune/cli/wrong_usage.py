"""What is wrong with the words of a command line, as one plain sentence. Light.

The errors are click's, which newer versions of typer carry inside, so they are known by what they
have.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

from autotune.errors import UsageError, closest

_PLAIN = (
    (r"valid integer", "takes a whole number"),
    (r"valid (?:number|float)", "takes a number"),
    (r"greater than or equal to (\S+)", r"takes \1 or more"),
    (r"less than or equal to (\S+)", r"takes \1 or less"),
    (r"not in the range (\S+?)<=x<=(\S+)", r"takes \1 to \2"),
    (r"not in the range x>=(\S+)", r"takes \1 or more"),
    (r"not in the range x<=(\S+)", r"takes \1 or less"),
)
"""What values have to be: as pydantic says it, and as click does."""


def usage_error(error: Any) -> UsageError:
    """An error of the command line as the one place that says errors takes it."""
    ctx = getattr(error, "ctx", None)
    # An option without its value is told without a context.
    command = ctx.command_path if ctx else " ".join(["autotune", *_first_word(sys.argv[1:])])
    if found := re.search(r"[Pp]ath '([^']*)' is not readable", str(error.format_message())):
        return UsageError(f"You may not read {found[1]}; run autotune with sudo.")
    return UsageError(f"{_fault(error)}; `{command} --help` says what there is.")


def _first_word(words: Sequence[str]) -> list[str]:
    """The command's name, if it comes first."""
    return [word for word in words[:1] if not word.startswith("-")]


def _fault(error: Any) -> str:
    message = str(error.format_message()).strip().rstrip(".")
    if param := getattr(error, "param", None):
        missing = type(error).__name__ == "MissingParameter"
        return f"{_name(param)} {'is missing' if missing else _wanted(error.message)}"
    if found := re.fullmatch(r"No such command '(.*?)'.*", message, re.DOTALL):
        names = error.ctx.command.list_commands(error.ctx) if error.ctx else ()
        return f'There is no command "{found[1]}"{closest(found[1], names)}'
    if option := getattr(error, "option_name", None):
        return _option(str(option), message, error.ctx)
    if found := re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", message, re.DOTALL):
        return f'"{found[1]}" is one argument too many'
    return message


def _option(option: str, message: str, context: Any) -> str:
    if message.startswith("No such option"):
        names = [name for param in context.command.params for name in param.opts] if context else ()
        return f"There is no option {option}{closest(option, names)}"
    return f"{option} takes {'no' if 'does not take' in message else 'a'} value"


def _name(param: Any) -> str:
    """As the user writes it: the long form of an option, the word that stands for an argument."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.name.upper())


def _wanted(message: str) -> str:
    """What a value has to be, of what click or pydantic says of it."""
    text = message.strip().rstrip(".")
    for pattern, plain in _PLAIN:
        if found := re.search(pattern, text):
            return found.expand(plain)
    return f"cannot be used: {text}"
