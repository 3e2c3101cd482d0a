"""The help of a command in plain words: no names of types, and ranges as people say them. Light."""

import re
from typing import Any

from typer.core import TyperCommand

_TYPE = re.compile(r"(?<=\S) <[^<>]*>$")
_RANGES = (
    (re.compile(r"\[x<=\d{6,}\]"), ""),
    (re.compile(r"x<=\d{6,}; "), ""),
    (re.compile(r"; x<=\d{6,}"), ""),
    (re.compile(r"(\d+)<=x<=(\d+)"), r"from \1 to \2"),
    (re.compile(r"x>=(\d+)"), r"\1 or more"),
    (re.compile(r"x<=(\d+)"), r"\1 or less"),
)
"""The largest number of a run that the store takes is nothing that people ask for."""


class PlainCommand(TyperCommand):
    """As typer's, but for words that only programmers know."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        words = [_usage(word) for word in self.collect_usage_pieces(ctx)]
        formatter.write_usage(ctx.command_path, " ".join(words))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write = formatter.write_dl

        def plainly(rows: Any, *args: Any, **kwargs: Any) -> None:
            write([(_TYPE.sub("", name), _ranges(text)) for name, text in rows], *args, **kwargs)

        formatter.write_dl = plainly
        try:
            super().format_options(ctx, formatter)
        finally:
            del formatter.write_dl


def _usage(word: str) -> str:
    """`{DEVICE}` as DEVICE, `[[RUN|PROFILE]]` as [RUN|PROFILE]; what may be left out stays in
    brackets."""
    found = re.fullmatch(r"([{\[]*)(.*?)([}\]]*)(\.\.\.)?", word)
    if found is None:
        return word
    many = "..." if found[4] or found[2].endswith("...") else ""
    name = found[2].removesuffix("...")
    return f"[{name}]{many}" if "[" in found[1] else f"{name}{many}"


def _ranges(text: str) -> str:
    for pattern, said in _RANGES:
        text = pattern.sub(said, text)
    return text.rstrip()
