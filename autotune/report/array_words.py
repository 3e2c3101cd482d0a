"""What a report of an array says in words, from its document."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from autotune.deploy.status import NOT_PROVEN
from autotune.guard.session import Summary
from autotune.quantities import show_count, show_seconds
from autotune.report import check as checks
from autotune.report.array_rows import (
    MOST_CHECKS,
    MOST_PASSES,
    is_left_out,
    latencies,
    moment,
    ratio_and_span,
    show_gain,
    times,
)
from autotune.report.guard import summary_line

Document = Mapping[str, Any]
DRAWN_SYNCS = 3
HOW = {
    "p99": "p99: the time within which 99 of 100 requests were answered. ceiling: the limit that "
    "the p99 must not pass.",
    "syncs": "The p99 of a guarded sync is measured every few seconds, over the last half minute, "
    "from the users' own requests or from small test reads. Where a sync took long, a point of its "
    "pictures stands for some minutes: the line is their mean, the shade reaches to the highest. "
    "limit: the speed that the guard allowed. deadline: the moment by which the sync was to be "
    "over.",
    "checks": "During a check, the p99 of each half minute with requests was noted: the table has "
    "the median and the highest.",
    "forecast": "A forecast is measured by a short check, and its 95 % intervals hold as long as "
    "the same users stay. So far the hours fitted better than the p99: take that for an order of "
    "magnitude.",
    "passes": "A pass of re-tuning measures the profile in turn with the original settings. "
    "unchanged: the array is as it was. kept: something moved, and nothing better was proven. "
    "adopted, advised: a better profile was proven, and put into force or not. reverted: the "
    "original settings are back. Throughput since adoption is relative to the day on which the "
    "profile was adopted.",
    "runs": "A run measures with fio; what it keeps was measured in turn with the original "
    "settings.",
    "advice": "Advice is what was seen on the array without changing anything; what it costs is "
    "from the source that is named.",
}


def about(array: Document) -> str:
    """Which array it is, as mdadm names it, and what the page has of it."""
    uuid = array["uuid"]
    groups = ":".join(uuid[n : n + 8] for n in range(0, len(uuid), 8))
    place = f" on {array['host']}" if array["host"] else ""
    place = " in the lab, on simulated disks" if array["lab"] else place
    return (
        f"What autotune keeps about the md array {groups}{place}: the newest of each kind here, "
        "then tables that begin with the newest."
    )


def how(arrays: Sequence[Document]) -> list[str]:
    """How the figures of these pages were got."""
    found = {part for part in HOW for array in arrays if array.get(part)}
    if found & {"syncs", "checks", "forecast"}:
        found.add("p99")
    return [text for part, text in HOW.items() if part in found]


def short(array: Document) -> list[tuple[str, str]]:
    """What is to be known first, of newest things alone: what it is about, and sentences."""
    said = []
    if array["in_force"] is not None:
        said.append(("in force", in_force_line(array["in_force"])))
    if array["syncs"]:
        last = array["syncs"][0]
        text = sync_line(last)
        said.append(("guarded sync", f"{moment(last['began'])}: {text[0].lower()}{text[1:]}"))
    if array["checks"]:
        said.append(("check", check_line(array["checks"][0])))
    forecast = array["forecast"]
    if forecast is not None:
        full = forecast["curve"][-1]
        felt = full["p99_ns"]["rebuild"]
        with_p99 = f", with a p99 of {latencies(felt)}" if felt else ""
        text = (
            f"{moment(forecast['made'])}: a rebuild at full speed takes "
            f"{times(full['seconds']['rebuild'])}{with_p99}."
        )
        said.append(("forecast", text))
    if array["passes"]:
        last = array["passes"][-1]
        gain = f", throughput is ×{ratio_and_span(last['gain'])} that of the original settings"
        text = f"{moment(last['at'])}: {last['outcome']}{gain if last['gain'] else ''}."
        said.append(("re-tuning", text))
    elif array["runs"]:
        last = array["runs"][0]
        outcome = last["outcome"].rstrip(".") or last["state"]
        gain = f", overall ×{show_gain(last['gain'])}" if last["gain"] else ""
        if last["gain"] and f"×{last['gain']['ratio']:.2f} (" in outcome:
            gain = ""
        said.append((f"run {last['run']}", f"{moment(last['began'])}: {outcome}{gain}."))
    if array["advice"] is not None:
        said.append(("advice", advice_line(array["advice"])))
    return said


def in_force_line(status: Document) -> str:
    """Which profile is in force, what it sets, and what reads otherwise or is wrong."""
    if status["profile"] is None:
        said = ["no profile."]
    else:
        knobs = ", ".join(f"{name} {knob['wanted']}" for name, knob in status["knobs"].items())
        said = [
            f'the profile "{status["profile"]}" is {status["how"]}, {status["until"]}: {knobs}.',
            *(note for note in status["notes"] if note == NOT_PROVEN),
        ]
    differ = [
        f"{name} reads {knob['value']}"
        for name, knob in status["knobs"].items()
        if not knob["same"] and knob["value"] is not None
    ]
    said += [f"Differs: {', '.join(differ)}."] if differ else []
    return " ".join([*said, *(f"Wrong: {fault}" for fault in status["faults"])])


def sync_line(sync: Document) -> str:
    """How a guarded sync went, in a sentence or two."""
    summary = sync["summary"]
    if summary is None:
        return (
            f"The guard of this {sync['action']} was interrupted after "
            f"{show_seconds(sync['seconds'])}; what it saw until then is shown."
        )
    told = Summary(**{field.name: summary[field.name] for field in fields(Summary)})
    return summary_line(told, sync["ceiling_ns"] or float("inf"))


def check_line(check: Document) -> str:
    """What a check came to, and how it disturbed."""
    found = "all was read" if check["complete"] else checks.state(check)
    return f"{moment(check['began'])}: {found}{checks.read(check)} {checks.disturbed(check)}"


def advice_line(advice: Document) -> str:
    """How many findings there are, and which."""
    names = ", ".join(dict.fromkeys(each["name"] for each in advice["findings"]))
    count = show_count(len(advice["findings"]), "finding") if names else "no finding"
    return f"{moment(advice['looked'])}: {count}{names and f' ({names})'}."


def not_advised(advice: Document) -> list[str]:
    """What could not be looked at, and what nobody wants to hear of."""
    said = [f"Not looked at: {name}: {why}." for name, why in advice["not_looked_at"].items()]
    names = ", ".join(dict.fromkeys(each["name"] for each in advice["silenced"]))
    return [*said, f"Found, but silenced in the configuration: {names}."] if names else said


def not_shown(array: Document) -> list[str]:
    """What is left out of the page, and why."""
    said = list(array["missing"])
    if quiet := sum(is_left_out(array, n) for n in range(len(array["passes"][-MOST_PASSES:]))):
        which = show_count(quiet, "older pass", "older passes")
        said.append(f"{which} in which the profile stayed: the picture and --json have them.")
    if (older := len(array["passes"]) - MOST_PASSES) > 0:
        said.append(f"{show_count(older, 'older pass', 'older passes')}: --json has them all.")
    if (older := len(array["checks"]) - MOST_CHECKS) > 0:
        said.append(f"{show_count(older, 'older check')}: --json has them all.")
    if (more := len(array["syncs"]) - DRAWN_SYNCS) > 0:
        said.append(f"Pictures of {show_count(more, 'earlier sync')}: --json has their points.")
    if array["runs"]:
        said.append("What each run measured: `autotune report NUMBER` shows it.")
    return said
