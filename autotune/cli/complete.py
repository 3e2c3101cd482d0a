"""What the shell completes: arrays, profiles, runs, and the names that options take. Light: it is
asked at each press of the tab key. What cannot be read has no completions.

What is offered goes to the shell, and zsh's script evaluates it: a file that a stranger has named
`$(…)` would run. So names with other than plain characters are not offered.
"""

import contextlib
import glob
import re
import sqlite3
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from autotune.suggested import STATE_DIR

_PLAIN = re.compile(r"[A-Za-z0-9_./+@:-]+")


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    """Those that go on from what was typed, in order, and that no shell reads as anything else."""
    return sorted(n for n in names if n.startswith(incomplete) and _PLAIN.fullmatch(n))


def devices(incomplete: str) -> list[str]:
    """The arrays of this machine, as devices; by their short names where one is begun with."""
    names = (folder.parent.name for folder in Path("/sys/block").glob("md*/md"))
    prefix = "" if incomplete.startswith("md") else "/dev/"
    return _plain((prefix + name for name in names), incomplete)


def runs(incomplete: str) -> list[str]:
    """The numbers of the newest runs."""
    with contextlib.suppress(sqlite3.Error):
        # SQLAlchemy takes longer to load than a person waits for the tab key.
        store = sqlite3.connect(f"file:{STATE_DIR / 'autotune.db'}?mode=ro", uri=True)
        with contextlib.closing(store):
            found = store.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 50").fetchall()
            return [str(row[0]) for row in found if str(row[0]).startswith(incomplete)]
    return []


def profiles(incomplete: str) -> list[str]:
    """Profiles and starting points by name; the shell completes files itself."""
    shipped = [Path(e.name) for e in resources.files("autotune.profiles.starting").iterdir()]
    own = [*(STATE_DIR / "profiles").glob("*.json"), *Path("/etc/autotune/profiles").glob("*")]
    names = {path.stem for path in (*shipped, *own) if path.suffix in (".toml", ".json")}
    begun = Path(incomplete)
    files = begun.parent.glob(f"{glob.escape(begun.name)}*.json") if incomplete else ()
    return _plain(names, incomplete) + _plain(map(str, files), "")


def runs_or_profiles(incomplete: str) -> list[str]:
    return runs(incomplete) + profiles(incomplete)


def what_to_report(incomplete: str) -> list[str]:
    """Runs, arrays and designs."""
    from autotune.design.stored import names

    designs = [name for name in names(STATE_DIR) if name.startswith(incomplete)]
    return runs(incomplete) + devices(incomplete) + designs


def workloads(incomplete: str) -> list[str]:
    """The shipped workloads."""
    folder = resources.files("autotune.profiles.workloads")
    names = (Path(e.name) for e in folder.iterdir() if e.name.endswith(".toml"))
    return sorted(path.stem for path in names if path.stem.startswith(incomplete))


def knobs(incomplete: str) -> list[str]:
    """Knobs, also after a comma, and `all`."""
    from autotune.knobs import ALL

    before, comma, last = incomplete.rpartition(",")
    names = [knob.name for knob in ALL if knob.name.startswith(last)]
    if not comma and "all".startswith(last):
        names.append("all")
    return [before + comma + name for name in names]


def policies(incomplete: str) -> list[str]:
    """The policies of `autotune guard`."""
    from autotune.guard.goals import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def promises(incomplete: str) -> list[str]:
    """What `autotune guard` may keep first."""
    return [name for name in ("deadline", "ceiling") if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """The formats of `autotune export`."""
    from autotune.export import FORMATS

    return sorted(name for name in FORMATS if name.startswith(incomplete))
