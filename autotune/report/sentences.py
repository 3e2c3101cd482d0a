"""What a report says in words, from its document: the same in every form."""

from collections.abc import Iterable, Mapping

from autotune.quantities import (
    show_bytes,
    show_count,
    show_latency,
    show_ram,
    show_seconds,
    show_times,
)
from autotune.report.run_rows import Document, change, figure_rows, is_compared, show, show_time
from autotune.report.tables import UNCLEAR, show_span
from autotune.stats.sequential import Held

HOW = (
    "Every figure is measured by fio on this array. A phase runs until its figure is steady, or "
    "until its longest time has passed.",
    "A combination is kept only after it was measured in turn with the original settings, as often "
    "as it took until it was clear. Only a difference beyond noise counts.",
    "An interval contains the true value 95 times of 100, as far as the noise was seen in the run.",
    "What a search showed was measured once or twice, and the best of many looks better than it "
    "is. So a combination that was not measured in turn is called not proven.",
    "What was measured in turn was looked at after each pair, and each look is a chance of error. "
    "Its interval allows for that, so it is wider than that of the same trials in a picture.",
    "Latencies and single seconds are drawn of the phases that were measured in turn; of several "
    "trials of a side, the seconds are those of the first.",
    "How the array itself changed during a run is known from measuring the original settings again "
    "and again; it is taken out of what the search showed.",
)


def verdict(run: Document) -> str:
    """What came of a run and what that costs, in a sentence or two."""
    return f"{headline(run)} {price(run)}".rstrip()


def headline(run: Document) -> str:
    """What came of a run, in a sentence."""
    gain = run["gain"]
    size = f"overall ×{gain['ratio']:.2f} ({show_span(gain['low'], gain['high'])})" if gain else ""
    if run["adopt"]:
        turn = "measured in turn with the original settings"
        if gain and gain["low"] > 1.0:
            return f"Better: {size}, {turn}."
        # It holds a ceiling, or was given and is no worse.
        return f"Kept: {run['reason'].rstrip('.')}; {size + ', ' if size else ''}{turn}."
    if run["state"] == "done":
        return f"Keep what you have: {run['reason'].rstrip('.')}."
    said = f"The run did not finish ({run['state']}), so nothing is proven."
    if run["reason"]:
        said += f" Why it ended: {run['reason'].rstrip('.')}."
    return f"{said} The best so far: {size}." if run["changes"] and size else said


def _is_worse(figure: Document) -> bool:
    worse = figure["change"] and figure["change"]["conclusion"] == "worse"
    return bool(worse) and not figure["quiet"]


def price(run: Document) -> str:
    """What is worse with what was kept, in a sentence, or ""."""
    if not run["adopt"]:
        return ""
    worse = [
        f"{figure['name']} {'rises' if figure['kind'] == 'latency' else 'falls'} from "
        f"{show(figure, figure['before'])} to {show(figure, figure['after'])}"
        for figure in run["figures"]
        if _is_worse(figure)
    ]
    return f"The price: {' and '.join(worse)}." if worse else ""


def where(run: Document) -> str:
    """The machine and the day, to tell one run from another."""
    at = show_time(run["started"])
    if run["lab"]:
        return f"In the lab, on simulated disks; {at}"
    return f"On {run['host']}; {at}" if run["host"] else at


def terms(run: Document) -> list[str]:
    """What the names in the table of figures mean."""
    phases = run["workload"].get("phases", [])
    loads = ", ".join(phase["name"] for phase in phases if phase.get("load"))
    checks = ", ".join(phase["name"] for phase in phases if phase.get("check"))
    found = [f"{loads}: short loads of the workload {run['workload']['name']}."] if loads else []
    if checks:
        found.append(
            f"{checks}: a redundancy check, as a stand-in for a resync or rebuild. Its throughput "
            "is what is read of each member disk, on RAID 10 of the array."
        )
    if any(figure["kind"] == "latency" for figure in run["figures"]):
        found.append(
            "p99: 99 of 100 small requests were answered within it while the phase ran. ceiling: "
            "what a p99 must not pass."
        )
    found += [
        f"The ceiling of {figure['name']} is autotune's own, since none was asked for: "
        f"×{figure['ratio']:.2f} of what the original settings showed."
        for figure in run["figures"]
        if figure["ceiling"] and figure["ratio"] and not figure["quiet"]
    ]
    if is_compared(run):
        found.append(
            "overall: the mean (geometric) of the throughputs' changes, by the workload's weights. "
            "=: no changed setting can move it. In brackets: 95 % intervals."
        )
    if any(figure["held"] == Held.HOLDS and figure["change"] for figure in run["figures"]):
        found.append(
            "holds: a ceiling in ms holds by the value measured; one of autotune's own by the "
            "whole interval of the change."
        )
    if any(UNCLEAR in row for row in figure_rows(run)):
        found.append("unclear: noise leaves open whether anything changed.")
    if any(figure["held"] == Held.NOT_SHOWN for figure in run["figures"]):
        found.append("not shown: noise leaves open whether the p99 keeps below its ceiling.")
    return found


def costs(run: Document) -> list[str]:
    """What the answer costs, and what the run did."""
    said = []
    if run["changes"] and run["ram_bytes"] is not None:
        allowed = show_bytes(run["ram_budget_bytes"])
        ram = show_ram(run["ram_bytes"], run["original_ram_bytes"])
        said.append(f"It takes {ram}; {allowed} were allowed.")
    for figure in run["figures"]:
        # What is worse is said at once.
        if run["adopt"] and figure["ceiling"] and figure["change"] and not _is_worse(figure):
            was, now = (show_latency(figure[side]) for side in ("before", "after"))
            said.append(
                f"{figure['name']}: {was} with the original settings, {now} with the new ones; "
                f"{show_latency(figure['ceiling'])} is allowed."
            )
    for name, long in (run["long_load"] or {}).get("figures", {}).items():
        seconds = run["long_load"]["seconds"]
        said.append(f"Over {seconds:.0f} s of load, {name} is {change(long)}.")
    trials = show_count(len(run["trials"]), "trial")
    if run["pairs"]:
        turns = show_times(run["pairs"])
        said.append(f"Original and new settings were measured {turns} each, in turn.")
    answer = run["compared"]["setting"]
    said += [_not_kept(each) for each in run["in_turn"] if each["setting"] != answer]
    took = f"The run took {show_seconds(run['seconds'])}: {trials}"
    said.append(f"{took}, {show_bytes(run['bytes_written'])} written.")
    return said


def not_the_answer(run: Document) -> list[str]:
    """What was measured in turn last, if that is not the answer; of a run that was ended before it
    had decided, with what its trials show of it."""
    if not run["compared"]["setting"] or run["compared"]["kept"]:
        return []
    if run["state"] == "done":
        return [f"Measured in turn, and not kept: {run['compared']['setting']}."]
    last = run["in_turn"][-1]
    said = f"Measured in turn last, {show_times(last['pairs'])} each: {last['setting']}"
    if gain := last["gain"]:
        said += f": overall ×{gain['value']:.2f} ({show_span(gain['low'], gain['high'])})"
    return [
        f"{said}. By these trials alone, before the run had decided; the pictures of latencies and "
        "of seconds show it as new."
    ]


def _not_kept(proof: Document) -> str:
    if proof["reason"]:
        return not_kept(proof["setting"], proof["reason"])
    said = f"Also measured in turn, and not kept: {proof['setting']}"
    if gain := proof["gain"]:
        said += f": overall ×{gain['value']:.2f} ({show_span(gain['low'], gain['high'])})"
    return f"{said}, measured {show_times(proof['pairs'])} each."


def not_kept(setting: str, reason: str) -> str:
    """What else was measured in turn."""
    return f"Also measured in turn, and not kept: {setting}. Why: {reason.rstrip('.')}."


def parts(shares: Iterable[tuple[str, bool, float]]) -> list[str]:
    """What was proven of single changes: of each its knob, whether it is needed, and what it brings
    at the least."""
    known = list(shares)
    needed = [(knob, low) for knob, is_needed, low in known if is_needed]
    # What one that is alone brings was measured in turn.
    doubtful = [knob for knob, low in needed if low <= 1 and len(needed) > 1]
    idle = [knob for knob, is_needed, _ in known if not is_needed]
    said = [f"proven only together with the rest: {', '.join(doubtful)}"] if doubtful else []
    if idle:
        said.append(f"left as they were, since the gain was proven without: {', '.join(idle)}")
    return said


def drifted(drifts: Mapping[str, float]) -> list[str]:
    """How the array itself changed, by the largest ratio to its start of each figure: a sentence,
    or none."""
    if not drifts:
        return []
    shown = ", ".join(f"{name} ×{ratio:.2f}" for name, ratio in drifts.items())
    return [
        "The array itself changed during the run. With the original settings, figures differed "
        f"from those at the start by up to: {shown}."
    ]


def next_best(setting: str, gain: float, obstacle: str, other_in_turn: bool) -> str:
    """Of what is not kept the best, and what was in its way; `other_in_turn`: whether another
    setting was measured in turn."""
    other = "Of the other combinations, the best in the search"
    what = other if other_in_turn else "The best combination tried"
    return f"{what} was {setting}: overall ×{gain:.2f} in the search, but {obstacle}."


def no_long_load(why: str) -> str:
    """What is not known of a gain that was seen for seconds alone."""
    return (
        f"A long load was not measured: {why}. The kernel's own growth of the stripe cache may "
        "make the gain on writes smaller then."
    )


def reaches(name: str, ceiling_ns: float, high_ns: float) -> str:
    """That a ceiling of the user's holds by what was measured, which is not sure."""
    return (
        f"{name} holds its ceiling of {show_latency(ceiling_ns)} as it was measured; its 95 % "
        f"interval reaches {show_latency(high_ns)}."
    )


def _reach(figure: Document) -> float | None:
    """How high a p99 may be that holds its ceiling, if that is beyond it."""
    if figure["held"] != "holds" or not figure["change"] or not figure["ceiling"]:
        return None
    high: float = figure["reaches"]
    return high if high > figure["ceiling"] else None


def remarks(run: Document) -> list[str]:
    """What else is to be known."""
    said = list(run["notes"])
    if run["given"]:
        said.append(f"Nothing was searched; a given combination was measured: {run['given']}.")
    if run["stopped"]:
        said.append(f"The search ended: {run['stopped']}.")
    said += [
        reaches(figure["name"], figure["ceiling"], reach)
        for figure in run["figures"]
        if (reach := _reach(figure)) is not None
    ]
    said += drifted(run["drifts"])
    if near := run["nearest"]:
        said.append(
            next_best(near["setting"], near["gain"], near["obstacle"], near["other_in_turn"])
        )
    return said + [
        f"Another ceiling, a fifth above what was measured (not proven): {offer['text']}."
        for offer in run["offers"]
    ]
