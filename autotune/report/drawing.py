"""How pictures are drawn: matplotlib's SVG, whose colours the page chooses, for light and dark."""

import io
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

WIDTH_IN = 5.2
"""As wide as a column of the page; a phone shows it at nearly this size."""
NAMES = ("ink", "faint", "before", "after", "limit", "good", "bad", "line")
_STAND_INS = [f"#0000{0xA1 + n:02x}" for n in range(len(NAMES))]
INK, FAINT, BEFORE, AFTER, LIMIT, GOOD, BAD, LINE = _STAND_INS
"""Stand-ins for the page's colours of these names."""
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "autotune",
    # A device or a workload may have a $ in its name.
    "text.parse_math": False,
    "font.family": "sans-serif",
    # It comes with matplotlib, and is wider than what most pages are shown with.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.0,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}
EVEN = 1.6
"""Up to this ratio of its ends a log axis looks even, and has even labels."""
NARROW = 1.05
"""A log axis shows at least this ratio."""
_TICKS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (3, (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)),
    (8, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)),
    (60, (1.0, 2.0, 5.0)),
    (300, (1.0, 3.0)),
    (math.inf, (1.0,)),
)
"""Up to which ratio of the ends of a log axis there is room for a label at these multiples."""


_SMALL = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG for a page, with its title, and what it shows for those who cannot see."""

    title: str
    description: str
    svg: str


@contextmanager
def styled() -> Iterator[None]:
    """Whatever is drawn and saved within is drawn our way, whatever the user's own style is."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _STYLE.items():
            mpl.rcParams[name] = value  # type: ignore[index]
        yield


def figure(height_in: float, *panels: float, same_x: bool = True) -> tuple[Figure, list[Axes]]:
    """A drawing with panels of these relative heights below each other, or one. `same_x`: they
    share what is below them."""
    drawing = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    heights = panels or (1.0,)
    axes = drawing.subplots(
        len(heights), 1, squeeze=False, sharex=same_x, height_ratios=list(heights)
    )
    return drawing, list(axes[:, 0])


def picture(name: str, drawing: Figure, title: str, description: str) -> Picture:
    """What a drawing is in a page; `name` tells the page's pictures apart."""
    buffer = io.StringIO()
    nobody = {"Date": None, "Creator": None, "Format": None, "Type": None}
    drawing.savefig(buffer, format="svg", transparent=True, metadata=nobody)
    whole = buffer.getvalue()
    start = whole.index("<svg")
    size = whole[whole.index('viewBox="', start) :].split('"')[1]
    inside = _in_a_page(name, whole[whole.index(">", start) + 1 :])
    head = (
        f'<svg viewBox="{size}" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
    )
    return Picture(title, description, head + inside)


def _in_a_page(name: str, svg: str) -> str:
    """The inside of an SVG with colours and font of the page, and ids that are its own."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Those of matplotlib are hashes of numbers whose last digits are not the same each time.
    found = dict.fromkeys(re.findall(r"#([\w-]+)", svg))
    ids = {each: f"{name}-{number}" for number, each in enumerate(found)}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{ids[m[1]]}"' if m[1] in ids else "", svg)
    svg = re.sub(r'(url\(#|href="#)([\w-]+)', lambda m: m[1] + ids[m[2]], svg)
    for stand_in, variable in zip(_STAND_INS, NAMES, strict=True):
        svg = svg.replace(stand_in, f"var(--{variable})")
    # The family is that of the page.
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r" font-family: [^;\"]*;", "", svg)
    # A fifth of the page: turns by nothing, and digits that are smaller than any pixel.
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda m: _SMALL.sub(r"\1", m[0]), svg)
    return re.sub(r">\s*\n\s*<", "><", svg).strip()


def log_axis(axes: Axes, which: str, show: Callable[[float], str]) -> None:
    """Make an axis ("x" or "y") a log one, with as many labels as there is room for."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    # Room beside what is drawn that was reckoned evenly may reach below zero.
    axes.autoscale_view()
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    if high / low < NARROW:
        # Or labels would be alike.
        middle, by = math.sqrt(low * high), math.sqrt(NARROW)
        low, high = middle / by, middle * by
        (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axes.tick_params(axis=which, which="minor", length=0)  # type: ignore[arg-type]
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    axis.set_minor_formatter(NullFormatter())
    if high / low < EVEN:
        # Steps of which 1 is a multiple.
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        return
    multiples = next(found for most, found in _TICKS if high / low <= most)
    axis.set_major_locator(LogLocator(base=10, subs=multiples, numticks=20))


def ratio(value: float) -> str:
    """`×1.2`, as axes have it."""
    return f"×{round(value, 3):g}"
