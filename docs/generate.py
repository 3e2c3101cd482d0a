"""Writes the reference pages that follow from the code: commands, knobs, workloads, findings.

python docs/generate.py           write the pages
python docs/generate.py --check   fail if a page is stale, or one at the top names what is not there
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from autotune.advice.advise import CHECKS
from autotune.cli.main import app
from autotune.knobs import ALL, DEFAULT, Knob
from autotune.knobs.base import ArrayNumber, MemberNumber
from autotune.measure.workload import Phase, load_workload, shipped

DOCS = Path(__file__).parent
TOP = DOCS.parent
HEAD = "<!-- Written by docs/generate.py from the code: change that, then run `make pages`. -->\n\n"
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```", re.S)
SOURCE = re.compile(r"`([a-z][\w./-]*/[\w./-]*)`")


def commands() -> str:
    """Every command with its arguments and options."""
    root = typer.main.get_command(app)
    text = (
        "# Commands\n\n"
        "Every command has `--help`. Exit codes: 0 done, 1 failed, 2 wrong usage.\n"
        "Commands that change an array, and those that read the state folder, need root.\n"
    )
    for name, command in walk(root, "autotune"):
        text += f"\n## {name}\n\n{inspect.cleandoc(command.help or '')}\n\n{_usage(name, command)}"
        text += _parameters(command)
    return text


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands below one. Typer's own types changed from version to version, so only the
    attributes are used that all of them have."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for child in sorted(command.commands):
        yield from walk(command.commands[child], f"{name} {child}")


def _usage(name: str, command: Any) -> str:
    arguments = [argument(p) for p in command.params if not is_option(p)]
    return f"```\n{' '.join([name, *arguments, '[OPTIONS]'])}\n```\n"


def is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]")
    return name if parameter.required else f"[{name}]"


def _parameters(command: Any) -> str:
    rows = [
        f"| {_cell(shown)} | {_cell(meaning)} |\n" for shown, meaning in map(row, command.params)
    ]
    return "\n| argument or option | meaning |\n|---|---|\n" + "".join(rows) if rows else ""


def row(parameter: Any) -> tuple[str, str]:
    meaning = parameter.help or ""
    if not is_option(parameter):
        return f"`{argument(parameter)}`", meaning
    shown = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if not parameter.is_flag:
        shown += f" {parameter.metavar or 'VALUE'}"
        if parameter.default is not None and "[default" not in meaning:
            meaning += f" Default: `{parameter.default}`."
    if isinstance(parameter.envvar, str):
        meaning += f" Environment: `{parameter.envvar}`."
    return shown, meaning


def _cell(text: str) -> str:
    """Text for a table: one line, and no bar that would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def knobs() -> str:
    """Every knob: where it is, its range and default, what it costs, what to beware of."""
    text = (
        "# Settings (knobs)\n\n"
        "`autotune run` tunes the first five by default, where the array has them.\n"
        "`--knobs all` tunes all of them, and `--knobs NAME,NAME` those that are named.\n"
        "`autotune show DEVICE` prints what a run would try on an array of yours.\n"
    )
    for knob in ALL:
        chosen = "yes" if knob in DEFAULT else "with `--knobs all`, or by its name"
        rows = {
            "File": _where(knob),
            "Unit": knob.unit or "–",
            "Range": _range(knob),
            "Kernel's default": _default(knob),
            "RAM": _doc(type(knob).ram_bytes) or "none",
            "Can change the phases": _phases(knob),
            "Tuned by default": chosen,
        }
        text += f"\n## {knob.name}\n\n{_doc(type(knob))}\n\n| | |\n|---|---|\n"
        text += "".join(f"| {name} | {_cell(value)} |\n" for name, value in rows.items())
        text += "\n" + "".join(f"- {hazard}\n" for hazard in knob.hazards)
    return text


def _doc(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def _where(knob: Knob) -> str:
    if isinstance(knob, ArrayNumber):
        return f"`/sys/block/mdX/{knob.file}`"
    file = knob.file if isinstance(knob, MemberNumber) else f"queue/{knob.name}"
    return f"`{file}` of each member's disk"


def _range(knob: Knob) -> str:
    if hasattr(knob, "low"):
        return f"{knob.low} to {knob.high}"
    return "`none`, `mq-deadline`, `kyber`, `bfq`, as far as every disk offers them"


def _default(knob: Knob) -> str:
    value = getattr(knob, "kernel_default", None)
    return str(value) if value is not None else _doc(type(knob).default)


def _phases(knob: Knob) -> str:
    names = [phase.name for phase in load_workload("balanced").phases if _moves(knob, phase)]
    return ", ".join(names) + " (of `balanced`)"


def _moves(knob: Knob, phase: Phase) -> bool:
    return any(knob.moves(phase, f.name.partition(".")[2]) for f in phase.figures())


def workloads() -> str:
    """Every shipped workload, as its file has it."""
    text = (
        "# Shipped workloads\n\n"
        "Choose one with `autotune run DEVICE --workload NAME`.\n"
        "[Workloads of your own](workload-files.md) explains each line.\n"
    )
    for name in shipped():
        workload = load_workload(name)
        file = (TOP / "profiles/workloads" / f"{name}.toml").read_text()
        text += f"\n## {name}\n\n{workload.description}\n\n```toml\n{file}```\n"
    return text


def findings() -> str:
    """Every finding of `advise`: when there is one, what it costs, and where that is from."""
    text = (
        "# Findings of `advise`\n\n"
        "`autotune advise DEVICE` prints each with what was seen on the array, and with the\n"
        "command that fixes it. [Get advice on an array](../how-to/advise.md) explains the rest.\n"
        "The names never change: `[advise] silence` in the [configuration](configuration.md) has\n"
        "those that are not to be told.\n"
    )
    for check in CHECKS:
        rows = {"Found if": f"{check.finds}.", "Costs": check.cost, "Source": check.source}
        text += f"\n## {check.name}\n\n| | |\n|---|---|\n"
        text += "".join(f"| {name} | {_cell(value)} |\n" for name, value in rows.items())
    return text


PAGES = {
    "commands.md": commands,
    "knobs.md": knobs,
    "workloads.md": workloads,
    "findings.md": findings,
}


def broken_links() -> list[str]:
    """Links to files that are not there, in the pages which mkdocs does not see."""
    pages = [page for page in (TOP / "README.md", TOP / "benchmarks/README.md") if page.exists()]
    return [
        f"{page.relative_to(TOP)}: the link to {target} is broken"
        for page in pages
        for target in LINK.findall(CODE.sub("", page.read_text()))
        if not (page.parent / target).exists()
    ]


def missing_sources() -> list[str]:
    """Files of the repository that a page at the top names and that are not there."""
    return [
        f"{page} names {name}, which is not there"
        for page in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
        for name in SOURCE.findall(CODE.sub("", (TOP / page).read_text()))
        if "NAME" not in name
        if not any((folder / name).exists() for folder in (TOP, TOP / "autotune"))
    ]


def copies() -> list[str]:
    """Pages that were links to one at the top, as before `sed -i`, and would become stale."""
    return [
        f"{page.relative_to(TOP)} is a copy; make it a link again"
        for page in sorted((DOCS / "development").iterdir())
        if not page.is_symlink()
    ]


def main() -> int:
    faults = [*broken_links(), *missing_sources(), *copies()]
    for name, page in PAGES.items():
        path, text = DOCS / "reference" / name, HEAD + page()
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            faults.append(f"{path.relative_to(TOP)} is stale; run `make pages`")
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
