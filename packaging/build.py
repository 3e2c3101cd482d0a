"""Builds what is installed: a wheel and an sdist, and a package for each suite of Debian.

python packaging/build.py [SUITE...]      into dist/; without a suite: wheel and sdist alone

A package is built in a minimal system of its suite, which mmdebstrap makes once (in CACHE), since
its Python has to be the one of the machines that it is for. Needs root and mmdebstrap, pandoc.
"""

import argparse
import email.utils
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from licences import copyright_of
from man import main as write_man

TOP = Path(__file__).parents[1]
DIST = TOP / "dist"
CACHE = Path(os.environ.get("AUTOTUNE_CACHE", "/var/cache/autotune-machines"))
PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
SUFFIX = {"bookworm": "deb12", "trixie": "deb13"}
TOOLS = "debhelper,python3,python3-venv,python3-pip,lintian"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
SHELLS = {"bash": "autotune.bash", "zsh": "_autotune", "fish": "autotune.fish"}


def run(*words: str | Path, cwd: Path = TOP, **environment: str) -> None:
    subprocess.run(list(map(str, words)), cwd=cwd, env={**os.environ, **environment}, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build wheel, sdist and Debian packages.")
    parser.add_argument("suites", nargs="*", choices=[*PYTHON, []])
    suites: Sequence[str] = parser.parse_args().suites
    wheel = build_wheel()
    for suite in suites:
        print(build_deb(suite, wheel))


def build_wheel() -> Path:
    """Build sdist and wheel from the files that git knows; return the wheel."""
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=TOP, capture_output=True, check=True,
        ).stdout  # fmt: skip
        for name in filter(None, files.decode().split("\0")):
            if (TOP / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(TOP / name, Path(folder) / name)
        run(sys.executable, "-m", "build", "--outdir", DIST, folder)
    return max(DIST.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def build_deb(suite: str, wheel: Path) -> Path:
    """Build the package for a suite; return it."""
    system = CACHE / f"build-{suite}.tar"
    if not system.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = system.with_suffix(".part.tar")
        run("mmdebstrap", "--quiet", "--variant=buildd", f"--include={TOOLS}", suite, part)
        part.rename(system)
    wheels = _wheels(suite, wheel)
    with tempfile.TemporaryDirectory(dir=CACHE) as root:
        run("tar", "--extract", "--file", system, "--directory", root)
        source = Path(root, "build", "autotune-md")
        _lay_out(source, suite, wheels)
        # What make was told of (PYTHON=...) is for this machine, not for the package's own make.
        inside = ("chroot", root, "env", "-u", "MAKEFLAGS", "-u", "MAKEOVERRIDES",
                  "-C", "/build/autotune-md", "LC_ALL=C.UTF-8", "HOME=/root")  # fmt: skip
        run(*inside, "dpkg-buildpackage", "--build=binary", "--no-sign")
        (made,) = source.parent.glob("*.deb")
        run(*inside, "lintian", "--fail-on=error,warning", "--tag-display-limit=0",
            *("--suppress-tags=bad-distribution-in-changes-file", f"../{made.name}"))  # fmt: skip
        return Path(shutil.copy(made, DIST / made.name))


def _wheels(suite: str, wheel: Path) -> Path:
    """The wheels that go into the package, each of the version in constraints.txt."""
    folder = CACHE / f"wheels-{suite}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("autotune_md-*"):
        old.unlink()
    platforms = [f"--platform={name}" for name in PLATFORMS]
    run(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", *platforms,
        f"--python-version={PYTHON[suite]}", f"--dest={folder}",
        f"--constraint={TOP / 'packaging/constraints.txt'}", str(wheel))  # fmt: skip
    shutil.copy(wheel, folder)
    return folder


def _lay_out(source: Path, suite: str, wheels: Path) -> None:
    shutil.copytree(TOP / "packaging/debian", source / "debian")
    (source / "debian/rules").chmod(0o755)
    (source / "debian/changelog").write_text(_changelog(suite))
    (source / "debian/copyright").write_text(copyright_of(TOP, wheels))
    shutil.copytree(wheels, source / "wheels")
    write_man(source / "man")
    # What its links and texts name lies where they say.
    for page in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG"):
        shutil.copy(TOP / f"{page}.md", source)
    (source / "benchmarks").mkdir()
    shutil.copy(TOP / "benchmarks/README.md", source / "benchmarks")
    for pages in ("how-to", "reference", "explanation", "development"):
        # Those of development are links to the ones above.
        shutil.copytree(TOP / "docs" / pages, source / "docs" / pages, symlinks=True)
    shutil.copytree(TOP / "examples", source / "examples")
    (source / "units").mkdir()
    for unit in (TOP / "autotune/service/units").glob("autotune-*"):
        text = unit.read_text().replace("/usr/local/bin/autotune", "/usr/bin/autotune")
        (source / "units" / unit.name).write_text(text)
    (source / "config.toml").write_text(_commented((TOP / "examples/config.toml").read_text()))
    (source / "completions").mkdir()
    for shell, name in SHELLS.items():
        asked = {**os.environ, "_AUTOTUNE_COMPLETE": f"source_{shell}"}
        command = Path(sys.executable).with_name("autotune")
        text = subprocess.run([command], env=asked, capture_output=True, text=True, check=True)
        (source / "completions" / name).write_text(text.stdout.lstrip())


def _changelog(suite: str) -> str:
    # For Debian, a version that is still to come is below it with a tilde.
    number = f"{version('autotune-md').replace('.dev', '~dev')}+{SUFFIX[suite]}"
    asked = ["git", "log", "-1", "--format=%ct"]
    date = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, check=True).stdout
    return (
        f"autotune-md ({number}) {suite}; urgency=medium\n\n"
        "  * What changed is in CHANGELOG.md of the project.\n\n"
        f" -- autotune maintainers <autotune@localhost>  {email.utils.formatdate(int(date))}\n"
    )


def _commented(text: str) -> str:
    """The example with every line of it commented out, so that nothing is set by installing."""
    return "".join(
        f"{line}\n" if not line or line.startswith("#") else f"#{line}\n"
        for line in text.splitlines()
    )


if __name__ == "__main__":
    main()
