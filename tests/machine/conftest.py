"""The machine that the tests share, and the table of what was seen to work where."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator import Disks
from machine import Machine, install
from ways import PACKAGE, WHEEL, Way

TOP = Path(__file__).parents[2]
TABLE = TOP / "docs/reference/machines.md"
RELEASES = {"bookworm": "deb12", "trixie": "deb13"}
"""Of the Debians that there is a package for."""
NEW_THROTTLE = "6.16"
"""From this Linux on, a sync's speed means something else; newer Debians have a later one."""
CACHE = Path(os.environ.get("AUTOTUNE_CACHE", "/var/cache/autotune-machines"))
VERSIONS = (
    "uname -r; mdadm --version 2>&1 | sed 's/.* v\\([0-9.]*\\).*/\\1/'; "
    "systemctl --version | sed -n 's/^systemd \\([0-9]*\\).*/\\1/p'; python3 -V | cut -d' ' -f2"
)
_done: dict[str, list[bool]] = {}
"""What was tried, and whether it worked, each time."""
_versions: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite", default="trixie", help="the Debian that the machine runs")
    parser.addoption("--cuts", default=3, type=int, help="how many of each kind, at random moments")


@pytest.fixture(autouse=True)
def stop_at_the_first(request: pytest.FixtureRequest) -> None:
    """Each test goes on from where the one before has brought the machine."""
    if request.session.testsfailed:
        pytest.skip("an earlier part failed")


@pytest.fixture(scope="session")
def disks() -> Disks:
    """Of the array; a file of tests may need others."""
    return Disks()


@pytest.fixture(scope="session")
def is_installed() -> bool:
    """Whether the machine has it from the start."""
    return False


@pytest.fixture(scope="session")
def machine(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    disks: Disks,
    way: Way,
    is_installed: bool,
) -> Iterator[Machine]:
    suite = request.config.getoption("--suite")
    folder = tmp_path_factory.mktemp("machine")
    image, packages = CACHE / f"{suite}.img", _packages(suite, folder)
    if is_installed:
        made = folder / "installed.img"
        subprocess.run(["cp", "--sparse=always", image, made], check=True)
        install(made, packages, way.install)
        image, packages = made, []
    workload = Path(__file__).parent / "workload.toml"
    files = [*packages, _profile(suite, folder), workload]
    with Machine(image, files, folder, disks) as machine:
        yield machine
        # Not before: Python comes with the package.
        _versions[:] = machine.do(VERSIONS).split()


@pytest.fixture(scope="session")
def way(request: pytest.FixtureRequest) -> Way:
    """How it is installed there."""
    return PACKAGE if request.config.getoption("--suite") in RELEASES else WHEEL


def _packages(suite: str, folder: Path) -> list[Path]:
    """What is installed in a machine: the package and its next version, or the wheel."""
    if suite not in RELEASES:
        (wheel,) = (TOP / "dist").glob("autotune_md-*.whl")
        return [wheel]
    (package,) = (TOP / "dist").glob(f"autotune-md_*+{RELEASES[suite]}_amd64.deb")
    shutil.copy(package, folder / "autotune.deb")
    _next_version(package, folder / "next.deb")
    return [folder / "autotune.deb", folder / "next.deb"]


def _profile(suite: str, folder: Path) -> Path:
    """The profile as it would have been proven in this machine."""
    profile = json.loads((Path(__file__).parent / "profile.json").read_text())
    if suite not in RELEASES:
        profile["proven_on"]["kernel"] = NEW_THROTTLE
    made = folder / "profile.json"
    made.write_text(json.dumps(profile))
    return made


def _next_version(package: Path, made: Path) -> None:
    """The same package with a later version, and little compressed."""
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        subprocess.run(["dpkg-deb", "--raw-extract", package, folder], check=True)
        control = Path(folder, "DEBIAN/control")
        control.write_text(re.sub("(?m)^(Version: .*)$", r"\1+next", control.read_text()))
        words = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", folder, made]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call" or report.failed:
        what = _title(item)
        _done.setdefault(what, []).append(not report.failed)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen into this machine's column of the table, where a whole file was tried."""
    suite = session.config.getoption("--suite")
    if not _versions or session.config.getoption("keyword"):
        return
    head, columns = _read_table()
    words = ["git", "-C", TOP, "describe", "--always", "--dirty"]
    commit = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    facts = dict(zip(("kernel", "mdadm", "systemd", "Python"), _versions, strict=False))
    facts["commit"] = commit
    column = columns.setdefault(suite, {})
    for item in session.items:
        column.pop(_title(item), None)
    column.update(facts | {what: _cell(worked) for what, worked in _done.items()})
    rows = list(dict.fromkeys(row for column in columns.values() for row in column))
    text = f"| | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}\n"
    for row in rows:
        cells = (column.get(row, "–") for column in columns.values())
        text += f"| {row} | {' | '.join(cells)} |\n"
    TABLE.write_text(head + text)


def _title(item: pytest.Item) -> str:
    function = item.function  # type: ignore[attr-defined]
    return (function.__doc__ or item.name).strip().rstrip(".")


def _cell(worked: list[bool]) -> str:
    if len(worked) > 1:
        return f"{sum(worked)} of {len(worked)} times"
    return "works" if worked[0] else "**fails**"


def _read_table() -> tuple[str, dict[str, dict[str, str]]]:
    text = TABLE.read_text()
    head, _, table = text.partition("| |")
    rows = [line.strip()[1:-1].split("|") for line in f"| |{table}".splitlines() if line.strip()]
    lines = [[cell.strip() for cell in row] for row in rows]
    if len(lines) < 2:
        return head, {}
    suites = lines[0][1:]
    columns: dict[str, dict[str, str]] = {suite: {} for suite in suites}
    for row, *cells in lines[2:]:
        for suite, cell in zip(suites, cells, strict=True):
            if cell != "–":
                columns[suite][row] = cell
    return head, columns
