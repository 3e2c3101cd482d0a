"""Files that stand for sysfs, with a journal over them."""

import shutil
from pathlib import Path

import pytest

from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.record import BOOT_ID
from autotune.system import sysfs

UUID = "f6e606b38ce3aa5941c0aa90d0ab4f9c"


class Files:
    """A few sysfs files below a root, and a journal over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.boot("boot-1")
        self.md = root / "sys/block/md0/md"
        self.queue = root / "sys/block/sda/queue"
        self.own = self.queue / "iosched"
        texts = {
            self.queue / "scheduler": "mq-deadline [none] bfq",
            self.queue / "nr_requests": "64",
            self.md / "stripe_cache_size": "256",
            self.md / "sync_speed_min": "1000 (system)",
            self.md / "sync_speed_max": "200000 (local)",
            self.md / "sync_min": "0",
            self.md / "sync_action": "idle",
        }
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        limits = root / "proc/sys/dev/raid"
        limits.mkdir(parents=True)
        (limits / "speed_limit_min").write_text("1000\n")
        (limits / "speed_limit_max").write_text("200000\n")
        self.paths = [path for path in texts if path.name != "sync_action"]
        self.path = journal_path(root / "state", UUID)

    def boot(self, name: str) -> None:
        path = self.root / BOOT_ID.relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def open(self) -> Journal:
        return new_journal(self.path, UUID, "/dev/md0", self.paths, self.root)

    def reload(self) -> Journal:
        return Journal.load(self.path)

    def write(self, journal: Journal, path: Path, text: str) -> None:
        journal.writing(path, text)
        path.write_text(text)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def resetting(files: Files, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A switch of the scheduler resets the queue length, as the kernel's does."""
    true_write = sysfs.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        true_write(path, text, timeout_s)
        if path.name == "scheduler":
            (files.queue / "nr_requests").write_text("128")
            shutil.rmtree(files.own, ignore_errors=True)
            if text == "mq-deadline":
                files.own.mkdir()
                (files.own / "read_expire").write_text("500")

    monkeypatch.setattr(sysfs, "write", write)
    return files
