"""Writes the man pages from the command tree, as `docs/reference/commands.md` is; needs pandoc.

python packaging/man.py FOLDER
"""

import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import argument, is_option, row, walk

from autotune.cli.groups import EXAMPLES, GROUPS
from autotune.cli.main import app

EXIT = (
    "0: done. 1: failed, with one sentence on standard error; of status, doctor and config check "
    "also: something needs attention. 2: wrong usage."
)
FILES = {
    "/etc/autotune/config.toml": "what re-tuning, guards and checks may do by themselves",
    "/etc/autotune/profiles": "profiles of this site",
    "/var/lib/autotune": "runs, profiles, and the journals of what has to be put back",
    "/etc/udev/rules.d/99-autotune-*.rules": "profiles that come back at each assembly",
    "/usr/share/doc/autotune-md": "the documentation: README.md, and how-to pages in docs/how-to",
}


def pages() -> dict[str, str]:
    """The page of autotune and of each command, in pandoc's Markdown, by name."""
    root: Any = typer.main.get_command(app)
    commands = dict(walk(root, "autotune"))
    texts = {name.replace(" ", "-"): _page(name, command) for name, command in commands.items()}
    return {"autotune": _top(root, commands), **texts}


def _head(name: str, summary: str) -> str:
    title = name.replace(" ", "-")
    head = f"---\ntitle: {title.upper()}\nsection: 1\nfooter: autotune {version('autotune-md')}\n"
    return f"{head}header: User Commands\n---\n\n# NAME\n\n{title} - {summary.rstrip('.')}\n\n"


def _summary(command: Any) -> str:
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


def _top(root: Any, commands: dict[str, Any]) -> str:
    text = _head("autotune", _summary(root)) + "# SYNOPSIS\n\n**autotune** COMMAND [OPTIONS]\n\n"
    text += "# COMMANDS\n\n"
    for group, names in GROUPS.items():
        listed = [name for name in commands if name.split()[1] in names]
        items = {f"**{name}**(1)".replace(" ", "-"): _summary(commands[name]) for name in listed}
        text += f"## {group}\n\n{_items(items)}"
    text += "# EXAMPLES\n\n" + _items({f"**{line}**": meaning for line, meaning in EXAMPLES})
    text += f"# EXIT STATUS\n\n{EXIT}\n\n# FILES\n\n"
    return text + _items({f"*{name}*": meaning for name, meaning in FILES.items()})


def _page(name: str, command: Any) -> str:
    arguments = [argument(p) for p in command.params if not is_option(p)]
    text = _head(name, _summary(command))
    text += f"# SYNOPSIS\n\n**{name}** {' '.join([*arguments, '[OPTIONS]'])}\n\n"
    text += f"# DESCRIPTION\n\n{inspect.cleandoc(command.help or '')}\n\n"
    # Terms in bold: the bold typewriter font is not one that all of groff's devices have.
    rows = {
        shown.replace("`", "**"): " ".join(meaning.split())
        for shown, meaning in map(row, command.params)
    }
    text += f"# ARGUMENTS AND OPTIONS\n\n{_items(rows)}" if rows else ""
    return text + f"# EXIT STATUS\n\n{EXIT}\n\n# SEE ALSO\n\n**autotune**(1)\n"


def _items(items: dict[str, str]) -> str:
    return "".join(f"{term}\n:   {meaning or '–'}\n\n" for term, meaning in items.items())


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        out = folder / f"{name}.1"
        call = ["pandoc", "--standalone", "--from=markdown-smart", "--to=man", f"--output={out}"]
        subprocess.run(call, input=text, text=True, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
