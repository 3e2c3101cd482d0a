"""`autotune report`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir, in_a_folder
from autotune.cli.terminal import say

FORMATS = ("html", "markdown", "text")
ENDINGS = {".md": "markdown", ".txt": "text"}
MOST_RUN = 2**31


def report(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|DEVICE|DESIGN...",
            autocompletion=complete.what_to_report,
            help="Runs' numbers, which `autotune history` lists, arrays, such as /dev/md0, or "
            "designs, such as design-1.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=in_a_folder,
            help="Write it to this file. [default: autotune-run-N.html, autotune-md0.html or "
            "autotune-design-1.html]",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="What to write: html, markdown or text. [default: as FILE ends (.md, .txt), else "
            "html]",
        ),
    ] = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Make a report of runs, of an array or of a design, to look at and to pass on.

    Several runs stand side by side. Of an array: the syncs that were guarded, its checks, the
    newest forecast, the passes of re-tuning, its runs, and what `advise` found. Of a design: the
    finalists, their figures and the commands.

    html is one file with pictures, for a browser. markdown and text are for a ticket, and printed
    unless --out is given. --json prints every figure of the report.

    Example: autotune report 3 --format markdown
    """
    import json

    from autotune import named_file
    from autotune.errors import UsageError, closest
    from autotune.results.stored_run import understood

    form = form or ENDINGS.get(out.suffix if out else "", "html")
    if form not in FORMATS:
        hint = closest(form, FORMATS)
        raise UsageError(f'There is no format "{form}"{hint}; there are {", ".join(FORMATS)}.')
    if as_json and out is not None:
        raise UsageError("--json prints every figure, so it goes without --out; leave one out.")
    names = list(dict.fromkeys(what))
    with understood(" and ".join(f"run {n}" if n.isdecimal() else n for n in names)):
        documents = [_document(name, state_dir) for name in names]
        # Through JSON, so that the page shows what the document says, and nothing else.
        written = "" if as_json else _written(json.loads(json.dumps(documents)), form)
    if as_json:
        print(json.dumps(documents, indent=2))
        return
    if form == "html" and out is None:
        kinds = "run-" if all(map(str.isdecimal, names)) else ""
        out = Path(f"autotune-{kinds}{'-'.join(Path(name).name for name in names)}.html")
    if out is None:
        print(written, end="")
        return
    named_file.save(out, written)
    say(f"Report saved: {out}")


def _document(name: str, state_dir: Path) -> dict[str, object]:
    """Of a run, if it is a number, of a design by its name, else of an array."""
    from autotune.design import stored
    from autotune.errors import UsageError
    from autotune.report import array_report, run_report, stored_array
    from autotune.report.history import as_it_is
    from autotune.store.database import Store
    from autotune.untrusted import harmless_throughout

    if stored.NAME.fullmatch(name):
        return dict(harmless_throughout(stored.find(name, state_dir)))
    if not name.isdecimal():
        return array_report.document(stored_array.find(name, state_dir))
    store, number = Store.existing(state_dir), int(name[:18])
    if store is None or number > MOST_RUN:
        raise UsageError(f"There is no run {name}; `autotune history` lists them.")
    run, trials = as_it_is(store.run(number)), store.trials(number)
    return run_report.document(run, trials, store.result(number), store.courses(number), state_dir)


def _written(documents: list[dict[str, object]], form: str) -> str:
    import os
    import tempfile

    from autotune.report import plain_report

    if form != "html":
        return plain_report.text(documents) if form == "text" else plain_report.markdown(documents)
    # Else matplotlib leaves a list of fonts in the home folder.
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("MPLCONFIGDIR", folder)
        from autotune.report.page import html

        return html(documents)
