"""`autotune doctor`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, DeviceOrAll, Json, StateDir
from autotune.cli.terminal import console, say
from autotune.suggested import NO_ARRAYS, with_folder

if TYPE_CHECKING:
    from autotune.system.array import Array
    from autotune.tuning.diagnosis import Diagnosis


def doctor(
    device: DeviceOrAll = None,
    all_: Annotated[bool, typer.Option("--all", help="Every array, as without DEVICE.")] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Say whether a run can start, what it would be like, and what earlier runs left.

    Changes nothing. Exit code 1 if something prevents a run. Without DEVICE it also says what
    autotune runs on (versions, tools, units, settings), for a bug report: no host names, serial
    numbers or UUIDs.
    """
    import json
    from dataclasses import replace

    from autotune.advice.advise import advise
    from autotune.checking.overdue import not_checked
    from autotune.checking.stored import mismatched
    from autotune.errors import AutotuneError, UsageError
    from autotune.preflight import leftovers
    from autotune.preflight.checks import PreflightFinding
    from autotune.report import diagnosis as report
    from autotune.safety.paths import journal_path, open_journals
    from autotune.system.array import find_array, list_arrays
    from autotune.tuning.diagnosis import diagnose

    if all_ and device is not None:
        raise UsageError("Name an array or take --all, not both.")
    arrays = [find_array(device)] if device is not None else list_arrays()
    journals = {str(path): leftovers.describe(path) for path in open_journals(state_dir)}
    known = {folder for _, folders in journals.values() for folder in folders}
    uuids = {array.uuid for array in arrays}
    prevented = any(leftovers.prevents(path, uuids) for path in map(Path, journals))
    nobody = not_checked()

    def look(array: "Array") -> "Diagnosis":
        each = diagnose(array, state_dir, known)
        texts = filter(None, (mismatched(array, state_dir), nobody.get(array.device)))
        more = (PreflightFinding("warn", text) for text in texts)
        return replace(each, findings=(*each.findings, *more))

    found = [look(array) for array in arrays]
    silence = _silenced()
    advice = {a.device: advise(a, state_dir, silence, measure=False) for a in arrays}
    refused = [each.device for each in found if each.run is None]
    if as_json:
        document: dict[str, object] = {
            "arrays": {each.device: report.diagnosis_document(each) for each in found},
            "runs": {each.device: report.expected_document(each) for each in found},
            "advice": {name: [f.name for f in each.findings] for name, each in advice.items()},
            "open_journals": list(journals),
        }
        if device is None:
            document["environment"] = _environment(arrays)
        print(json.dumps(document, indent=2))
        raise typer.Exit(1 if refused or prevented else 0)
    if device is None:
        _print_facts(_environment(arrays))
    if not arrays:
        print(NO_ARRAYS)
    for each in found:
        report.print_diagnosis(console(), each, advice[each.device])
    own = {str(journal_path(state_dir, array.uuid)) for array in arrays}
    for path, (message, _) in journals.items():
        # What prevents a run on one of these arrays has just been said.
        if path not in own:
            say(message)
    if refused:
        raise AutotuneError(f"A run cannot start on {', '.join(refused)}; see above.")
    if prevented:
        raise AutotuneError("An earlier run is not cleaned up, or one is under way; see above.")
    if found:
        say("Next, to see the whole plan or to tune:")
    for command in [f"autotune run {d.device}{more}" for d in found for more in (" --dry-run", "")]:
        print(f"  {with_folder(command, state_dir)}")


def _silenced() -> tuple[str, ...]:
    """The findings that nobody wants to hear of. A faulty configuration silences none: it is
    `autotune config check` that says what is wrong with it."""
    from autotune.errors import UsageError
    from autotune.service import CONFIG
    from autotune.service.config import load_config

    try:
        return load_config(CONFIG).advise.silence
    except UsageError:
        return ()


def _print_facts(facts: dict[str, str]) -> None:
    widest = max(map(len, facts))
    print("\n".join(f"{name:<{widest}}  {text}" for name, text in facts.items()), end="\n\n")


def _environment(arrays: "list[Array]") -> dict[str, str]:
    """What autotune runs on, with the units as they are installed."""
    from collections import Counter

    from autotune.errors import AutotuneError
    from autotune.preflight.environment import environment
    from autotune.service.install import status

    try:
        states = Counter(status().values())
    except AutotuneError:
        # Why may be a line of the configuration, which is for nobody who reads a bug report.
        return {**environment(arrays), "units": "not known; `autotune service status` says why"}
    units = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    if set(states) == {"missing"}:
        units = "not installed (optional)"
    return {**environment(arrays), "units": units}
