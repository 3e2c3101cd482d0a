"""What `autotune run` does with one array, once it is known what is asked for."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.cli.options import persist_applied, print_persisted
from autotune.cli.terminal import console
from autotune.deploy.persist import check
from autotune.quantities import show_ram
from autotune.report import named_answers
from autotune.report import result as report
from autotune.report.live import LiveReporter
from autotune.report.plan import plan_document, print_plan
from autotune.suggested import in_folder
from autotune.system.array import find_array
from autotune.tuning.document import result_document, spent_document
from autotune.tuning.preparation import Options
from autotune.tuning.prepare import prepare
from autotune.tuning.run import Done
from autotune.tuning.run import run as tune_array
from autotune.tuning.strategies import find_strategy

CTRL_C = "Ctrl-C ends it: all is put back; --resume goes on."


def dry_run(options: Options, state_dir: Path, as_json: bool, verbose: bool) -> dict[str, Any]:
    """Print what a run would do, unless the document is wanted; return that."""
    find_strategy(options.strategy)
    preparation = prepare(options, state_dir)
    if not as_json:
        print_plan(console(), preparation, verbose)
    return plan_document(preparation)


def run(
    options: Options, state_dir: Path, apply: bool, persist: bool, resume: bool, as_json: bool
) -> dict[str, Any]:
    """Tune the array, and print what was found, unless the document is wanted; return that."""
    if persist:
        check(find_array(options.device))
    with LiveReporter(console(stderr=True), CTRL_C) as reporter:
        done = tune_array(options, state_dir, reporter, apply, resume)
    if not as_json:
        _print(done, options.device, apply)
    files: tuple[Path, ...] = ()
    if persist and done.profile is not None:
        files = persist_applied(done.profile.knobs, options.device, state_dir, _document(done, ()))
    if not as_json:
        print_persisted(files, options.device)
    return _document(done, files)


def _document(done: Done, files: Sequence[Path]) -> dict[str, Any]:
    profile = done.profile.model_dump(mode="json") if done.profile else None
    return {
        **result_document(done.result, profile, done.path),
        "run": done.number,
        "left_out": list(done.left_out),
        "named": named_answers.document(done.named),
        "spent": spent_document(done.spent),
        "persisted": [str(path) for path in files],
    }


def _print(done: Done, device: str, apply: bool) -> None:
    out = console()
    ram = show_ram(done.ram_bytes, done.original_ram_bytes)
    report.print_result(out, done.result, done.path, ram)
    report.print_spent(out, done.spent)
    if done.not_measured:
        out.print(done.not_measured)
    named_answers.print_named(out, done.named, done.result.baseline, done.number)
    if done.path and not apply:
        use = in_folder(f"`autotune apply {shlex.quote(str(done.path))} {shlex.quote(device)}`")
        out.print(f"The original settings are back; {use} applies the profile.")
    if "AUTOTUNE_LAB" in os.environ:
        out.print("These commands are for inside the lab, whose arrays are new at each start.")
