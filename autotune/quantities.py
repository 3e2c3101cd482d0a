"""Quantities as people write and read them. Pure."""

import math
import re
from datetime import datetime

from autotune.errors import UsageError
from autotune.untrusted import plain

KIB = 1024
NS_PER_S = 1e9
_MOST_S = 100 * 365.25 * 86400
"""Beyond this, moments in time cannot be reckoned with."""
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_LAST_S = 250_000_000_000.0
"""In the last years that have a date."""
_LONGEST = 60
"""No quantity has more characters, and the time to read a text grows with the square of them."""
_NS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


def parse_bytes(text: str) -> int:
    """`256MiB` or `1GB` in bytes. Raise UsageError if it is not a size above zero."""
    # The units that boot hardly ever read a size, and pydantic takes 20 MB.
    from pydantic import ByteSize, TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        # pydantic leaves out what it does not understand: "50GiB/day" would be 50 GiB.
        short = len(text) <= _LONGEST
        whole = short and re.fullmatch(r"\s*\d*\.?\d+\s*[a-zA-Z]*\s*", text)
        size = int(TypeAdapter(ByteSize).validate_python(text)) if whole else 0
    except (ValidationError, OverflowError):
        size = 0
    if _is_bare(text):
        # Nobody means so few bytes.
        raise UsageError(f'"{plain(text)}" has no unit; write it like {text.strip()}MiB.')
    _refuse_nothing(text, "256MiB")
    if not 0 < size < 1 << 63:
        raise UsageError(f'"{plain(text)}" is not a size; write it like 256MiB.')
    return size


def _is_bare(text: str) -> bool:
    """Whether it is a number alone, above zero, of a length that anybody would write."""
    # `float` does not take each character for a space that `\s` does.
    number = text.strip()
    return bool(re.fullmatch(r"\d{1,12}(\.\d{1,6})?", number)) and float(number) > 0


def _refuse_nothing(text: str, example: str) -> None:
    """Raise UsageError if it is a quantity of zero, or less."""
    if re.match(r"\s*(-\s*\.?\d|(0+(\.0*)?|\.0+)\s*($|[a-zµ/]))", text, re.IGNORECASE):
        raise UsageError(f'"{plain(text)}" is not above zero; write it like {example}.')


def parse_rate(text: str) -> int:
    """`10MB/s` in bytes a second. Raise UsageError if it is none above zero."""
    if _is_bare(text.strip().removesuffix("/s")):
        number = text.strip().removesuffix("/s")
        raise UsageError(f'"{plain(text)}" has no unit; write it like {number}MB/s.')
    _refuse_nothing(text, "10MB/s")
    try:
        return parse_bytes(text.strip().removesuffix("/s"))
    except UsageError:
        raise UsageError(f'"{plain(text)}" is not a rate; write it like 10MB/s.') from None


def parse_share(text: str) -> float | None:
    """`5%` as 0.05; None if it is no percentage. Raise UsageError if it is one of nothing or of
    more than all."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if not found:
        return None
    share = float(found[1]) / 100
    if not 0 < share <= 1:
        raise UsageError(f'"{plain(text)}" is not above 0 % and at most 100 %; write it like 5%.')
    return share


def parse_budget(text: str) -> int | float:
    """`5%` of all memory as 0.05, or `256MiB` in bytes. Raise UsageError if it is neither."""
    return parse_share(text) or parse_bytes(text)


def _scaled(
    text: str, scales: dict[str, float], example: str, what: str, units: tuple[str, ...]
) -> float:
    if _is_bare(text):
        examples = " or ".join(f"{text.strip()}{unit}" for unit in units)
        raise UsageError(f'"{plain(text)}" has no unit; write it like {examples}.')
    _refuse_nothing(text, example)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)", text.strip())
    scaled = float(found[1]) * scales[found[2]] if found and found[2] in scales else 0.0
    if not 0 < scaled < math.inf:
        raise UsageError(f'"{plain(text)}" is not a {what}; write it like {example}.')
    return scaled


def parse_seconds(text: str) -> float:
    """`90s`, `5min`, `2 hours`, `1d` or `1h30min` in seconds. Raise UsageError if it is none of
    these."""
    parts = re.findall(r"[\d.]+\s*[a-z]+\s*", text.strip()[:_LONGEST])
    if len(parts) < 2 or "".join(parts) != text.strip():
        parts = [text]
    seconds = sum(_scaled(part, _SECONDS, "5min", "time", ("min", "h")) for part in parts)
    if seconds > _MOST_S:
        raise UsageError(f'"{plain(text)}" is more than 100 years; write it like 5min.')
    return seconds


def parse_latency_ns(text: str) -> float:
    """`20ms` or `500us` in ns. Raise UsageError if it is none of these."""
    return _scaled(text, _NS, "20ms", "latency", ("ms",))


def show_count(count: int, one: str, many: str = "") -> str:
    """`1 trial`, `2 trials`; `many` where an s at the end is not enough."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def show_times(count: int) -> str:
    """`once`, `twice`, `3 times`"""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def show_percent(part: float, whole: float) -> str:
    """`86 %`; `0 %` and `100 %` of nothing and of all alone."""
    percent = round(100 * part / whole)
    if part and not percent:
        return "<1 %"
    return ">99 %" if part < whole and percent == 100 else f"{percent} %"


def show_share(share: float, digits: int = 0) -> str:
    """`37%`, `37.2%`; `100%` of all alone."""
    most = 1 - 10.0 ** -(digits + 2)
    return f"{share if share >= 1 else min(share, most):.{digits}%}"


def show_moment(at_s: float, now_s: float) -> str:
    """`06:00`, `Mon 06:00` or `Mon 2026-11-30 06:00`, in local time, of seconds since 1970: no more
    than tells it from other moments."""
    days = (at_s - now_s) / 86_400
    forms = ((0.5, "%H:%M"), (6.0, "%a %H:%M"))
    form = next((form for most, form in forms if days < most), "%a %Y-%m-%d %H:%M")
    return datetime.fromtimestamp(min(at_s, _LAST_S)).strftime(form)


def show_ends(low: str, high: str) -> str:
    """`22 s to 26 s`; one of them where both read the same."""
    return low if low == high else f"{low} to {high}"


def in_brackets(low: str, high: str) -> str:
    """` (22 s to 26 s)`; "" where both read the same, as what it is behind then does."""
    return "" if low == high else f" ({low} to {high})"


def show_bytes(count: float) -> str:
    """`2.0 GiB`, `512 MiB`, `17 KiB`: two significant digits or more."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(int(math.log(max(count, 1), 1024)), len(units) - 1)
    scaled = count / 1024**power
    return (
        f"{scaled:.1f} {units[power]}" if power and scaled < 10 else f"{scaled:.0f} {units[power]}"
    )


def show_ram(count: int, original: int) -> str:
    """What a setting takes of RAM, beside what the original one took."""
    before = "as before" if count == original else f"{show_bytes(original)} before"
    return f"{show_bytes(count)} of RAM ({before})"


def show_rate(bytes_per_s: float) -> str:
    """Throughput in MB/s (10^6), as disks are sold."""
    mega = bytes_per_s / 1e6
    return f"{mega:.1f} MB/s" if mega < 100 else f"{mega:.0f} MB/s"


def show_latency(ns: float) -> str:
    """`1.2 ms`, `340 µs`, `2.1 s`."""
    if ns >= 1e9:
        return f"{ns / 1e9:.1f} s"
    if ns >= 1e6:
        return f"{ns / 1e6:.1f} ms" if ns < 1e8 else f"{ns / 1e6:.0f} ms"
    return f"{ns / 1e3:.0f} µs"


def show_figure(kind: str, value: float) -> str:
    """The value of a figure, by its kind: a throughput or a latency."""
    return show_rate(value) if kind == "throughput" else show_latency(value)


def show_seconds(seconds: float) -> str:
    """`45 s`, `3 min`, `3 min 20 s`, `1 h 05 min`, `3 days 4 h`."""
    whole = round(seconds)
    if whole >= 2 * 86_400:
        days, hours = divmod(round(whole / 3600), 24)
        return f"{days} days {hours} h" if hours else f"{days} days"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
