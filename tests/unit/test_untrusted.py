"""Files that somebody altered, given to every command that reads profiles: refused in one sentence,
or inert."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from some_profile import DOCUMENT, document

from autotune.cli.main import main
from autotune.deploy import apply, catalogue, compare
from autotune.deploy.persisted import profile_path
from autotune.system.array import find_array
from autotune.tuning import import_profile, prepare

CANARY = "canary"
SHELL = f"$(touch {CANARY}); `touch {CANARY}` | touch {CANARY} #"
ESCAPE = "\x1b]0;mine\x07\x1b[2J"
MARKUP = "[/] [bold]x[/nothing] [link=file:///etc/passwd]x"


def strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all strings in a document."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, (*path, key))


def with_text(path: tuple[Any, ...], text: str) -> str:
    copy = json.loads(json.dumps(DOCUMENT))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return json.dumps(copy)


ALTERED: dict[str, str] = {
    "unknown knob": json.dumps(document({"turbo": 1})),
    "a path for a knob": json.dumps(document({"../../../etc/passwd": 1})),
    "a command for a knob": json.dumps(document({SHELL: 1})),
    "a command for a value": json.dumps(document({"scheduler": SHELL})),
    "out of range": json.dumps(document({"stripe_cache_size": 1 << 40})),
    "no number at all": json.dumps(document({"stripe_cache_size": 10**400})),
    "newer schema": json.dumps({**DOCUMENT, "schema_version": 2}),
    "one field more": json.dumps({**DOCUMENT, "run": SHELL}),
    "nested": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "markup in its name": json.dumps({**DOCUMENT, "name": MARKUP}),
    "markup in a knob": json.dumps(document({MARKUP: 1})),
    **{f"a command in {p}": with_text(p, SHELL) for p in strings(DOCUMENT)},
    **{f"an escape in {p}": with_text(p, ESCAPE) for p in strings(DOCUMENT)},
    **{f"two lines in {p}": with_text(p, "a\nb") for p in strings(DOCUMENT)},
}

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command where there is one array, made up, and nothing can be written to it."""
    machine = fake_sysfs.raid6(tmp_path)
    array = find_array("md0", machine.root)
    monkeypatch.setattr("autotune.system.array.list_arrays", lambda: [array])
    for module in (apply, import_profile, compare, prepare):
        monkeypatch.setattr(module, "find_array", lambda _device: array)
    monkeypatch.setattr(apply, "lock", lambda *_, **_how: contextlib.nullcontext())
    monkeypatch.setattr(catalogue, "SITE", tmp_path / "site")
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str]:
        words = (*words, "--state-dir", str(tmp_path / "state"))
        monkeypatch.setattr("sys.argv", ["autotune", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return call


def check(code: int, shown: str, folder: Path) -> None:
    assert code in (0, 1, 2), shown
    assert not (folder / CANARY).exists()
    assert all(c.isprintable() or c == "\n" for c in shown), shown
    assert "Traceback" not in shown
    if code == 2:
        assert shown.count("\n") == 1, shown


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_profile_is_refused_or_inert(run: Run, tmp_path: Path, what: str) -> None:
    file = tmp_path / "theirs.json"
    file.write_text(ALTERED[what])
    for words in (
        ("diff", file, file),
        ("diff", file, "/dev/md0"),
        ("import", file, "--device", "/dev/md0", "--dry-run"),
        ("import", file, "--all", "--dry-run", "--workload", "quick"),
        ("import", file, "--device", "/dev/md0", "--no-verify"),
    ):
        check(*run(*words), tmp_path)
    persisted = profile_path(fake_sysfs.UUID.replace("-", ""), tmp_path)
    persisted.parent.mkdir(parents=True)
    file.rename(persisted)
    check(*run("status"), tmp_path)


@pytest.mark.parametrize(
    "what", ["unknown knob", "out of range", "newer schema", "a command for a value", "nested"]
)
def test_what_can_never_fit_is_refused(run: Run, tmp_path: Path, what: str) -> None:
    file = tmp_path / "theirs.json"
    file.write_text(ALTERED[what])
    code, shown = run("import", file, "--device", "/dev/md0", "--workload", "quick")
    assert code in (1, 2)
    assert shown.strip().endswith(".")
    cache = tmp_path / "sys/block/md0/md/stripe_cache_size"
    assert cache.read_text().strip() == "256"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_a_huge_file_is_refused_unread(run: Run, tmp_path: Path) -> None:
    for name in ("huge.json", "huge.toml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(100 << 20)
        for words in (("diff", name, name), ("import", name, "--device", "/dev/md0")):
            code, shown = run(words[0], *(tmp_path / w if w == name else w for w in words[1:]))
            assert code == 2
            assert "larger than" in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_a_profile_opens_no_file_as_its_workload(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\n[[phases]]\nname = "p"\nweight = 1\ncheck = true\n')
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps({**DOCUMENT, "workload": str(mine)}))
    code, shown = run("import", file, "--device", "/dev/md0", "--dry-run")
    assert code == 2
    assert "is not shipped" in shown
    # What is not measured with it need not be there.
    code, shown = run("import", file, "--device", "/dev/md0", "--dry-run", "--no-verify")
    assert code == 0, shown


def test_files_of_strangers_in_the_library_do_no_harm(run: Run, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for number, text in enumerate(ALTERED.values()):
        (site / f"{number}.json").write_text(text)
    (site / f"{ESCAPE.replace('/', '')}.toml").write_text("x = [[")
    (site / f"{MARKUP.replace('/', '')}.json").write_text(json.dumps(DOCUMENT))
    for words in (("profiles",), ("profiles", "--json"), ("profiles", "hdd-nas")):
        code, shown = run(*words)
        assert code == 0
        check(code, shown, tmp_path)
