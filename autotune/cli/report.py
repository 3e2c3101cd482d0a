"""`autotune report`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import say

FORMATS = ("html", "markdown", "text")


def report(
    runs: Annotated[
        list[int],
        typer.Argument(
            metavar="RUN...",
            autocompletion=complete.runs,
            max=2**31,
            help="Runs' numbers; `autotune history` lists them. Several stand side by side.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it to this file.  [default: autotune-run-N.html]"),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="What to write: html, markdown or text."),
    ] = "html",
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Make a report of stored runs, to look at and to pass on.

    html: one file with pictures, for a browser; markdown and text: for a ticket, printed unless
    --out is given. --json prints every figure of the report.
    """
    import json

    from autotune import durable
    from autotune.cli.history import as_it_is
    from autotune.errors import UsageError, closest
    from autotune.report.run_report import document
    from autotune.store.database import Store

    if form not in FORMATS:
        hint = closest(form, FORMATS)
        raise UsageError(f'There is no form "{form}"{hint}; there are {", ".join(FORMATS)}.')
    if as_json and out is not None:
        raise UsageError("--json prints every figure, so it goes without --out; leave one out.")
    store = Store.existing(state_dir)
    if store is None:
        raise UsageError(f"There is no run {runs[0]}; nothing has been run with {state_dir} yet.")
    documents = [
        document(as_it_is(store.run(n)), store.trials(n), store.result(n), store.courses(n))
        for n in dict.fromkeys(runs)
    ]
    if as_json:
        print(json.dumps(documents, indent=2))
        return
    # Through JSON, so that the page shows what the document says, and nothing else.
    written = _written(json.loads(json.dumps(documents)), form)
    if form == "html" and out is None:
        out = Path(f"autotune-run-{'-'.join(map(str, dict.fromkeys(runs)))}.html")
    if out is None:
        print(written, end="")
        return
    durable.save(out, written)
    say(f"Report saved: {out}")


def _written(documents: list[dict[str, object]], form: str) -> str:
    from autotune.errors import UsageError
    from autotune.report import plain_report

    if form != "html":
        return plain_report.text(documents) if form == "text" else plain_report.markdown(documents)
    try:
        from autotune.report.page import html
    except ImportError as error:
        raise UsageError(
            f"The page needs the package {error.name}; install it with "
            "`pip install 'autotune-md[report]'`, or take --format text."
        ) from None
    return html(documents)
