"""Checks of arrays: what one came to, in sentences and as JSON, and those of before as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from autotune.checking.record import CheckHistory, CheckRecord
from autotune.quantities import (
    show_bytes,
    show_count,
    show_latency,
    show_percent,
    show_seconds,
    show_share,
)
from autotune.report.text_table import TextTable
from autotune.system.blockdev import SECTOR


def document(device: str, record: CheckRecord, stopped: str = "") -> dict[str, Any]:
    """One check. `stopped`: why it goes no further now."""
    felt = record.felt
    return {
        "device": device,
        "complete": record.ended is not None,
        "stopped": stopped,
        "given_up": record.given_up,
        "began": record.began.isoformat(),
        "ended": record.ended.isoformat() if record.ended else None,
        "array": record.array,
        "position_sectors": record.position,
        "size_sectors": record.size,
        "share": record.share,
        "mismatch_sectors": record.mismatches,
        "mismatch_bytes": record.mismatches * SECTOR,
        "unread_sectors": record.unread,
        "seconds": record.seconds,
        "pieces": record.pieces,
        "parts": [part.model_dump(mode="json") for part in record.parts],
        "p99": {
            "measurements": felt.judged,
            "over": felt.over,
            "held": felt.judged - felt.over,
            "ceiling_ns": record.ceiling_ns,
            "middle_ns": felt.middle_ns,
            "worst_ns": felt.worst_ns,
        },
    }


def sentences(device: str, record: CheckRecord, stopped: str) -> list[str]:
    """What a check came to by now."""
    check = document(device, record, stopped)
    if check["complete"]:
        left_out = f" but {_unread(record.unread)}" if record.unread else ""
        found = f"Checked all of {device}{left_out}{read(check)}"
    else:
        so_far = _differs(record.mismatches) if record.mismatches else "No mismatch so far."
        found = (
            f"The check of {device} is paused at {show_share(record.share, 1)} ({stopped}); the "
            f"next `autotune check {device}` goes on from there. {so_far[0].upper()}{so_far[1:]}"
        )
    return [found, disturbed(check), "All limits are as they were found."]


def read(check: Mapping[str, Any]) -> str:
    """` in 7 parts, 5 h 13 min: no mismatch.`, from its document."""
    count = check["mismatch_sectors"]
    parts = f" in {show_count(check['pieces'], 'part')}" if check["pieces"] > 1 else ""
    found = _differs(count) if count else "no mismatch."
    return f"{parts}, {show_seconds(check['seconds'])}: {found}"


def _unread(count: int) -> str:
    return f"{show_bytes(count * SECTOR)} (which members list as bad blocks)"


def mismatched(device: str, record: CheckRecord) -> str:
    """What the administrator is told."""
    done = "all of it" if record.ended else f"{show_share(record.share)} of it"
    return f"A check of {device} has read {done}; {_differs(record.mismatches)}"


def _differs(count: int) -> str:
    return (
        f"{show_count(count, 'sector')} ({show_bytes(count * SECTOR)}) differ between the members. "
        "The kernel log may say where (`dmesg | grep mismatch`). On RAID 4, 5 and 6 look for a "
        "disk that fails (smartctl), and compare files with a backup; on RAID 1 and 10, some are "
        "harmless."
    )


def disturbed(check: Mapping[str, Any]) -> str:
    """How a check disturbed, from its document."""
    felt = check["p99"]
    if felt["middle_ns"] is None:
        return "Users sent hardly any requests meanwhile."
    text = (
        f"The p99 was {show_latency(felt['middle_ns'])} (median over the check) and at most "
        f"{show_latency(felt['worst_ns'])}"
    )
    if felt["ceiling_ns"] is None:
        return f"{text}."
    return (
        f"{text}; it was within {show_latency(felt['ceiling_ns'])} for "
        f"{show_percent(felt['held'], felt['measurements'])} of the measured time."
    )


def history_document(books: Sequence[CheckHistory]) -> list[dict[str, Any]]:
    """All checks, the newest first."""
    return [document(device, record) for device, record in _newest_first(books)]


def print_history(console: Console, books: Sequence[CheckHistory]) -> None:
    """One line a check."""
    found = _newest_first(books)
    if not found:
        console.print("No checks yet; `autotune check /dev/md0` makes one.")
        return
    table = TextTable(
        *(
            "began",
            "array",
            "state",
            "parts",
            "time",
            "sectors differing",
            "p99, median",
            "highest",
        ),
        right=[3, 5],
        whole=[0, 4],
    )
    for device, record in found:
        latencies = (record.felt.middle_ns, record.felt.worst_ns)
        table.add_row(
            record.began.astimezone().strftime("%Y-%m-%d %H:%M"),
            device,
            state(document(device, record)),
            str(record.pieces),
            show_seconds(record.seconds),
            str(record.mismatches),
            *(show_latency(ns) if ns is not None else "–" for ns in latencies),
            style="bold" if record.mismatches else "",
        )
    console.print(table)


def state(check: Mapping[str, Any]) -> str:
    """`complete` or how far it is, from its document."""
    if check["complete"]:
        unread = check["unread_sectors"]
        return f"complete but {show_bytes(unread * SECTOR)}" if unread else "complete"
    return f"{'given up ' if check['given_up'] else ''}at {show_percent(check['share'], 1)}"


def _newest_first(books: Sequence[CheckHistory]) -> list[tuple[str, CheckRecord]]:
    found = [(history.device, record) for history in books for record in history.checks]
    return sorted(found, key=lambda pair: pair[1].began, reverse=True)
