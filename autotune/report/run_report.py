"""Everything that a report of a stored run shows, as one document: the page, the text and the
pictures are made from it, so none of them has a figure of its own. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune import knobs
from autotune.errors import RefusalError
from autotune.problem.course import Course
from autotune.problem.setting import show_setting
from autotune.quantities import show_count
from autotune.report import compared, named_answers, sentences, tried
from autotune.results import solve
from autotune.results.stored_run import StoredProblem
from autotune.results.study import Study, study_of
from autotune.store import RunRecord, TrialRecord
from autotune.suggested import STATE_DIR, with_folder
from autotune.untrusted import harmless_throughout

Document = dict[str, Any]


def document(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    said: Mapping[str, Any] | None,
    courses: Mapping[int, Mapping[str, Course]],
    state_dir: Path = STATE_DIR,
) -> Document:
    """A run: rates in bytes/s, latencies in ns, gains and p99s as ratios to the original settings,
    `low` and `high` the ends of 95 % intervals. `said`: what the run said at its end, None if that
    is not stored; `courses`: what phases showed second by second, by trial.

    Raise RefusalError if the original settings were never measured, or another version stored the
    run in a form that cannot be read.
    """
    study, told = study_of(run, trials), said or {}
    problem, answer = study.problem, _answer(run, trials)
    evidence = answer.profile.evidence if answer and answer.profile else None
    kept = run.state == "done" and run.profile is not None
    sides = compared.sides(study, trials, kept)
    found: Document = harmless_throughout(
        {
            "kind": "run",
            "run": run.id,
            "device": run.device,
            "state": run.state,
            "host": told.get("host", problem.host),
            "lab": told.get("lab", problem.lab),
            "started": run.started.isoformat(timespec="seconds"),
            "ended": run.ended.isoformat(timespec="seconds") if run.ended else None,
            "adopt": kept,
            "reason": run.outcome or told.get("reason", ""),
            "gain": gain(told, evidence),
            "proven": evidence.confirmed if evidence else None,
            "figures": compared.figures(study, trials, told, evidence),
            "changes": _changes(answer, told),
            "ram_bytes": answer.ram_bytes if answer else None,
            "original_ram_bytes": answer.original_ram_bytes if answer else None,
            "ram_budget_bytes": problem.ram_budget_bytes,
            "write_budget_bytes": problem.write_budget_bytes,
            "bytes_written": told.get("bytes_written", sum(t.bytes_written for t in trials)),
            "seconds": told.get("seconds", _seconds(run, trials)),
            "spent": told.get("spent"),
            "commands": _commands(run, answer, told, problem, state_dir),
            "points": tried.points(study, run, trials),
            "ceilings": [str(ceiling) for ceiling in problem.ceilings],
            "named": named_answers.document(solve.named(run, trials)),
            "trials": tried.trials(study, trials),
            "effects": told.get("shares", []),
            "drift": compared.drift(study, trials),
            "drifts": told.get("drifts", {}),
            "long_load": told.get("long_load"),
            "pairs": told.get("pairs", 0),
            "in_turn": tried.in_turn(study, trials, told.get("refused", [])),
            "compared": sides.document(),
            "distributions": compared.distributions(courses, sides),
            "courses": compared.seconds(courses, sides),
            "array": problem.array.model_dump(mode="json"),
            "workload": problem.workload.model_dump(mode="json"),
            "strategy": problem.strategy,
            "given": problem.given,
            "careful": problem.careful,
            "command": told.get("command"),
            "environment": told.get("environment"),
            "stopped": told.get("stopped"),
            "notes": [*told.get("notes", []), *_notes(told, problem)],
            "offers": [_offer(each, study) for each in told.get("offers", [])],
            "nearest": _nearest(told, study),
            "next": told.get("next"),
            "history": with_folder(f"autotune history {run.id}", state_dir),
            "missing": _missing(run, trials, told, courses, study),
        }
    )
    return found


def _seconds(run: RunRecord, trials: Sequence[TrialRecord]) -> float:
    """What a run took that did not say so itself."""
    if run.ended is None:
        return sum(trial.seconds for trial in trials)
    return (run.ended - run.started).total_seconds()


def _answer(run: RunRecord, trials: Sequence[TrialRecord]) -> solve.Solution | None:
    """What the run ends with; of one that came to no end, the best that holds all ceilings."""
    try:
        return solve.solve(run, trials)
    except RefusalError:
        return None


def gain(told: Mapping[str, Any], evidence: Any) -> Document | None:
    """The overall gain of a run, which older ones have only in their profile's `evidence`."""
    if told.get("gain"):
        return dict(told["gain"])
    if evidence is None:
        return None
    return {"ratio": evidence.gain, "low": evidence.low, "high": evidence.high}


def _changes(answer: solve.Solution | None, told: Mapping[str, Any]) -> list[Document]:
    profile = answer.profile if answer else None
    if profile is None:
        return []
    parts = {share["knob"]: share for share in told.get("shares", [])}
    return [
        {
            "knob": knob,
            "before": profile.before.get(knob),
            "after": value,
            "unit": _unit(knob),
            "part": {k: parts[knob][k] for k in ("ratio", "low", "high")}
            if knob in parts
            else None,
        }
        for knob, value in profile.knobs.items()
    ]


def _nearest(told: Mapping[str, Any], study: Study) -> Document | None:
    """The best that is not kept, unless it is what was measured in turn last."""
    near, other_in_turn = told.get("nearest"), told.get("gain") is not None
    if not near or (other_in_turn and told.get("proposed") == near["setting"]):
        return None
    return {
        "setting": show_setting(near["setting"], study.problem.baseline),
        "gain": near["gain"],
        "obstacle": near["obstacle"],
        "other_in_turn": other_in_turn,
    }


def _offer(offer: Mapping[str, Any], study: Study) -> Document:
    """What another ceiling would give, with the setting that showed it, which older runs have not
    kept."""
    if "setting" not in offer:
        return dict(offer)
    setting = show_setting(offer["setting"], study.problem.baseline)
    return {**offer, "setting": setting, "text": f"{offer['text']} ({setting})"}


def _unit(knob: str) -> str:
    return next((each.unit for each in knobs.ALL if each.name == knob), "")


def _commands(
    run: RunRecord,
    answer: solve.Solution | None,
    told: Mapping[str, Any],
    problem: StoredProblem,
    state_dir: Path,
) -> list[Document]:
    """What to type to use the answer, to keep it and to undo it; to go on, if there is none."""
    if told.get("lab", problem.lab):
        # On the host, that device is another one.
        return []
    if run.state != "done":
        # Nothing is proven, so nothing is to be kept.
        return []
    if answer is None or answer.profile is None:
        more = told.get("next")
        lost = "; all data on the array is lost" if "--destructive" in (more or "") else ""
        return [{"what": f"try next{lost}", "command": more}] if more else []
    # A pass of re-tuning removes the file of what it only measured.
    kept = told.get("profile_path") if not problem.given else None
    path = shlex.quote(kept) if kept else f"run{run.id}.json"
    device, commands = shlex.quote(run.device), []
    if kept and Path(kept).is_absolute() and Path(kept).parent.name == "profiles":
        # The page may be made from a copy of the folder.
        state_dir = Path(kept).parent.parent
    if not kept:
        commands = [
            {"what": "write the profile", "command": f"autotune solve {run.id} --save {path}"}
        ]
    commands += [
        {"what": "apply until the next reboot", "command": f"autotune apply {path} {device}"},
        {
            "what": "apply it at each boot, too",
            "command": f"autotune apply {path} {device} --persist",
        },
        {"what": "undo", "command": f"autotune restore {device}"},
        {"what": "no longer apply it at boot", "command": f"autotune unpersist {device}"},
    ]
    return [{**each, "command": with_folder(each["command"], state_dir)} for each in commands]


def _notes(told: Mapping[str, Any], problem: StoredProblem) -> list[str]:
    long = told.get("long_load") or {}
    notes = [sentences.no_long_load(long["left_out"])] if long.get("left_out") else []
    if not told and problem.left_out:
        return [f"Not measured: {', '.join(problem.left_out)}."]
    notes += [told["not_measured"]] if told.get("not_measured") else []
    shares = told.get("shares", []) if told.get("adopt") else []
    parts = sentences.parts((share["knob"], share["needed"], share["low"]) for share in shares)
    return notes + [f"{text[0].upper()}{text[1:]}." for text in parts]


def _missing(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    told: Mapping[str, Any],
    courses: Mapping[int, Mapping[str, Course]],
    study: Study,
) -> list[str]:
    """What is not shown, and why."""
    said = []
    if run.state != "done":
        said.append(
            f"The run did not finish ({run.state}), so nothing of it is proven and nothing is to "
            "be applied. `autotune run --resume`, with the same options, goes on with one that "
            "was interrupted."
        )
    elif not told:
        said.append(
            "An older version ran it, which did not store each setting's part, the command and "
            "the versions."
        )
    if not courses:
        said.append(
            "Distributions of latencies, and what single seconds showed: it ended before any were "
            "stored, or an older version ran it."
        )
    if not told.get("shares") and (told or run.state != "done"):
        said.append("Each setting's part in the gain: nothing was proven that would have parts.")
    pooled = {number for point in study.points for number in point.trials}
    if left := [t.number for t in trials if t.number not in pooled]:
        which = show_count(len(left), "trial")
        said.append(
            f"Not in the picture of throughput and p99: {which} that came to "
            f"no end or measured something else ({', '.join(map(str, left))})."
        )
    return said
