"""A report as one HTML file: no script, nothing from the network."""

from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from autotune.report import sentences
from autotune.report.pictures import pictures


def html(runs: list[dict[str, Any]]) -> str:
    """The page of these runs' documents; the same bytes for the same documents."""
    source = files("autotune.report").joinpath("page.html").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    drawn = {
        run["run"]: {
            # What matplotlib writes is escaped already.
            name: (each, Markup(each.svg))
            for name, each in pictures(run).items()
        }
        for run in runs
    }
    template = environment.from_string(source)
    return template.render(runs=runs, drawn=drawn, said=sentences)
