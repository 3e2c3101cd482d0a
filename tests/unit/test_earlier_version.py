"""Files that an earlier version wrote are read, restored, recognised and removed by this one."""

import io
import json
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from fake_run import Machine
from rich.console import Console
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.deploy.persist import unpersist
from autotune.deploy.status import status
from autotune.report import show
from autotune.results import solve
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.restore import restore
from autotune.service import install
from autotune.store.database import Store
from autotune.system import sysfs
from autotune.system.array import find_array

RECORDED = Path(__file__).parent / "recorded"
OLD_ROOT = "/tmp/autotune-recorded"
UUID = fake_sysfs.UUID.replace("-", "")
KEPT = {"stripe_cache_size": 2048}
"""What the first recorded run found, applied and persisted."""


@pytest.fixture(params=sorted(p.name for p in RECORDED.iterdir() if p.is_dir()))
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """The recorded machine as the kill left it, below another root."""
    machine = Machine(tmp_path, monkeypatch)
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    recorded = RECORDED / request.param
    for folder in ("state", "etc"):
        shutil.copytree(recorded / folder, tmp_path / folder, symlinks=True)
    (tmp_path / "etc/udev").mkdir(exist_ok=True)
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("the-boot-of-the-recording\n")
    for name, text in json.loads((recorded / "now.json").read_text()).items():
        (tmp_path / name).write_text(text + "\n")
    for journal in tmp_path.glob("state/*/*.jsonl"):
        journal.write_text(journal.read_text().replace(OLD_ROOT, str(tmp_path)))
        journal.chmod(0o600)
    return machine


def _call(machine: Machine, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--state-dir", str(machine.state)])
    assert done.exit_code == 0, done.output
    return done.output


def _restore(path: Path, root: Path) -> None:
    outcome = restore(Journal.load(path), root)
    assert outcome.complete
    assert not outcome.foreign
    assert not path.exists()


def test_its_runs_are_listed_and_solved(machine: Machine) -> None:
    newest, oldest = json.loads(_call(machine, "history", "--json"))
    assert (newest["id"], newest["state"], newest["trials"]) == (2, "interrupted", 3)
    assert (oldest["id"], oldest["state"], oldest["trials"]) == (1, "done", 14)
    table = _call(machine, "history", "1")
    assert "Workload made-up, strategy recipe, at most 9 combinations" in table
    document = json.loads(_call(machine, "history", "1", "--json"))
    assert document["named"]["balanced"]["confirmed"]
    assert len(document["trials"]) == 14
    assert "proven" in _call(machine, "solve", "1")
    found = json.loads(_call(machine, "solve", "1", "--json"))
    assert found["profile"]["knobs"] == KEPT
    store = Store(machine.state)
    # What was cut says something too.
    assert solve.named(store.run(2), store.trials(2)) is not None


def test_its_interrupted_run_is_resumed(machine: Machine) -> None:
    root = machine.array.root
    _restore(journal_path(machine.state, UUID), root)
    done = machine.stored(2)
    result = machine.run("recipe", again=True)
    assert machine.stored(2)[: len(done)] == done
    assert Store(machine.state).run(2).state == "done"
    assert result.baseline["stripe_cache_size"] == KEPT["stripe_cache_size"]


def test_its_open_journal_and_what_it_applied_are_put_back(machine: Machine) -> None:
    root, md = machine.array.root, machine.array.md
    _restore(journal_path(machine.state, UUID), root)
    assert sysfs.read(md / "stripe_cache_size") == "2048"
    assert sysfs.read(md / "sync_action") == "idle"
    _restore(applied_path(machine.state, UUID), root)
    assert sysfs.read(md / "stripe_cache_size") == "256"
    assert not list(machine.state.rglob("*.jsonl"))


def test_its_persisted_profile_is_recognised_and_removed(machine: Machine) -> None:
    root = machine.array.root
    found = status(machine.array, machine.state)
    assert any("restore" in fault for fault in found.faults)
    _restore(journal_path(machine.state, UUID), root)
    array = find_array("md0", root)
    found = status(array, machine.state)
    assert found.good
    assert found.active is not None
    assert (found.active.how, found.active.profile.knobs) == ("applied", KEPT)
    assert found.persisted is not None
    console = Console(file=io.StringIO(), width=200)
    show.render_list([array], console)
    assert "md0" in console.file.getvalue()  # type: ignore[attr-defined]
    assert len(unpersist(UUID, root)) == 2
    assert not list(root.glob("etc/**/*autotune-*.rules"))
    assert not (root / "etc/autotune/persisted").exists()


LATER_UNITS = {
    "autotune-check@.service",
    "autotune-check@.timer",
    "autotune-restore.timer",
    "array.conf",
}
"""What is shipped since; the guard of a name is that of a UUID now."""


@pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
def test_its_units_are_recognised_and_removed(machine: Machine) -> None:
    root = machine.array.root
    missing = {Path(path).name for path, how in install.status(root).items() if how == "missing"}
    assert missing == LATER_UNITS
    removed = install.remove(root)
    assert root / "etc/systemd/system/autotune-guard@md0.service.d/ceiling.conf" in removed
    assert [p for p in (root / "etc/systemd").rglob("*") if not p.is_dir()] == []
