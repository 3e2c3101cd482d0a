"""The exported script, run on folders that stand for the machine of an array."""

import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_disk import fill, small_disk
from smuggled import UUID, profile, theirs

from autotune.export import FORMATS
from autotune.export.steps import lasting
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.system import noted_records

__all__ = ["theirs"]


class Sandbox:
    """Folders that stand for the machine of an array, and the script for them."""

    def __init__(self, root: Path, profile: Profile) -> None:
        self.root = root
        self.block = root / "sys/block/md0"
        for disk in ("sda", "sdb"):
            (root / "sys/block" / disk / "mq").mkdir(parents=True)
            for file, text in {
                "rotational": "1",
                "scheduler": "mq-deadline [kyber] none",
                "nr_requests": "128",
                "max_sectors_kb": "1280",
                "wbt_lat_usec": "75000",
                "rq_affinity": "1",
                "iosched/read_expire": "500",
                "iosched/fifo_batch": "16",
                "iosched/writes_starved": "2",
            }.items():
                self.put(f"sys/block/{disk}/queue/{file}", text)
            self.put(f"sys/block/{disk}/device/queue_depth", "32")
            self.put(f"sys/block/md0/md/dev-{disk}/state", "in_sync")
            (self.block / "md" / f"dev-{disk}" / "block").symlink_to(root / "sys/block" / disk)
        for file, text in {
            "level": "raid6",
            "chunk_size": "65536",
            "raid_disks": "5",
            "array_state": "clean",
            "sync_action": "idle",
            "uuid": UUID,
            "stripe_cache_size": "256",
            "sync_speed_min": "1000 (system)",
            "sync_speed_max": "200000 (system)",
            "group_thread_cnt": "0",
            "rmw_level": "1",
            "preread_bypass_threshold": "1",
            "sync_io_depth": "32 (system)",
            "safe_mode_delay": "0.210",
        }.items():
            self.put(f"sys/block/md0/md/{file}", text)
        self.put("sys/block/md0/queue/read_ahead_kb", "384")
        self.put("proc/sys/kernel/random/boot_id", "this-boot")
        self.put("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB")
        (root / "run").mkdir()
        (root / "dev").mkdir()
        (root / "dev/md0").touch()
        self.script = self.export(profile)

    def export(self, profile: Profile) -> Path:
        """A profile's script, for this machine."""
        ((file, text),) = FORMATS["shell"](profile, UUID).items()
        for name in ("sys", "run", "var/lib", "proc", "etc"):
            text = re.sub(rf"^([A-Z]+)=/{name}", rf"\1={self.root}/{name}", text, flags=re.M)
        script = self.root / file
        script.write_text(text)
        return script

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def run(
        self, word: str, script: Path | None = None, device: str = "md0"
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["dash", script or self.script, word, self.root / "dev" / device],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
        )

    def held(self) -> dict[str, str]:
        files = [p for p in (self.root / "sys").rglob("*") if p.is_file() and "dev-" not in str(p)]
        return {str(p.relative_to(self.root)): p.read_text().strip() for p in files}


def test_the_script_sets_what_the_profile_says_and_undoes_it(
    tmp_path: Path, theirs: Profile
) -> None:
    machine = Sandbox(tmp_path / "machine", theirs)
    before = machine.held()
    done = machine.run("apply")
    assert (done.returncode, done.stderr) == (0, "")
    after = machine.held()
    for step in lasting(theirs):
        for name in ("sda", "sdb") if step.on_disks else ("md0",):
            assert after[f"sys/block/{name}/{step.file}"] == step.text
    assert machine.run("status").returncode == 0
    machine.put("sys/block/sdb/queue/scheduler", "none")
    # As the switch of the scheduler has left it.
    machine.put("sys/block/sdb/queue/iosched/writes_starved", "9")
    assert machine.run("status").returncode == 1
    assert machine.run("undo").returncode == 0
    # A file takes "system" as it is.
    plain = {
        path: re.sub(r".*\[(.*?)\].*|\S+ \((system)\)", r"\1\2", t) for path, t in before.items()
    }
    assert machine.held() == plain
    assert "nothing to undo" in machine.run("undo").stdout
    assert not list((machine.root / "run").rglob("*.part"))


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("sys/block/md0/md/level", "raid5", "not a raid6"),
        ("sys/block/md0/md/chunk_size", "4096", "not 65536 bytes"),
        ("sys/block/md0/md/metadata_version", "external:/md127/0", "in a firmware format"),
        ("sys/block/sda/queue/rotational", "0", "another kind"),
        ("sys/block/md0/md/array_state", "inactive", "not running"),
        ("proc/meminfo", "MemAvailable: 60000 kB", "over half of the memory"),
        (f"var/lib/autotune/journal/{UUID}.jsonl", "", "A run of autotune has"),
        ("sys/block/md0/md/sync_action", "resync", "Not every value could be set"),
        ("sys/block/md0/md/reshape_position", "4096", "Not every value could be set"),
    ],
)
def test_the_script_changes_nothing_where_it_does_not_fit(
    tmp_path: Path, file: str, text: str, words: str
) -> None:
    machine = Sandbox(tmp_path, profile())
    machine.put(file, text)
    before = machine.held()
    done = machine.run("apply")
    assert done.returncode == 2
    assert words in done.stderr
    after = machine.held()
    for path, held in before.items():
        assert (
            re.sub(r".*\[|\].*|\S+ \((?=system)|\)", "", held) == after[path] or held == after[path]
        )


@pytest.mark.parametrize(
    ("file", "weights", "taken"),
    [
        ("system.slice/svc/io.bfq.weight", "default 250\n8:0 300", True),
        ("blkio/svc/blkio.bfq.weight_device", "8:0 300", True),
        ("system.slice/svc/io.bfq.weight", "default 250\n8:16 300", False),
        ("system.slice/svc/io.weight", "default 250\n8:0 300", False),
    ],
)
def test_a_weight_of_a_control_group_is_not_taken_away(
    tmp_path: Path, file: str, weights: str, taken: bool
) -> None:
    """The kernel forgets it with bfq."""
    machine = Sandbox(tmp_path, profile(knobs={"scheduler": "mq-deadline"}))
    machine.put("sys/block/sda/dev", "8:0")
    machine.put(f"sys/fs/cgroup/{file}", weights)
    # One of another scheduler's would be nothing to lose.
    assert machine.run("apply").returncode == 0
    assert machine.run("undo").returncode == 0
    machine.put("sys/block/sda/queue/scheduler", "mq-deadline kyber [bfq] none")
    before = machine.held()
    done = machine.run("apply")
    if not taken:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert "has a weight for sda" in done.stderr
    assert machine.held() == before


@pytest.mark.parametrize(
    ("knobs", "file", "beside"),
    [
        ({"nr_requests": 64}, "nr_requests", "iosched/async_depth"),
        # Of the array and of its disks, on Linux 6.9 and newer.
        (
            {"max_sectors_kb": 256, "array_max_sectors_kb": 192},
            "max_sectors_kb",
            "read_ahead_kb",
        ),
    ],
)
def test_what_the_kernel_resets_with_a_file_stays(
    tmp_path: Path, theirs: Profile, knobs: Setting, file: str, beside: str
) -> None:
    """Apply and undo make it good."""
    machine = Sandbox(tmp_path / "machine", theirs.model_copy(update={"knobs": knobs}))
    for device in ("md0", "sda", "sdb"):
        machine.put(f"sys/block/{device}/queue/{file}", "512")
        machine.put(f"sys/block/{device}/queue/{beside}", "96")
    before = machine.held()
    # Stands for the kernel.
    text = machine.script.read_text()
    store = 'echo "$2" >"$1" || return 1\n'
    reset = f'    case $1 in */{file}) echo 7 >"${{1%/*}}/{beside}" ;; esac\n'
    assert store in text
    machine.script.write_text(text.replace(store, store + reset))
    assert machine.run("apply").returncode == 0
    changed = {path for path, text in machine.held().items() if text != before[path]}
    assert {Path(path).name for path in changed} == {file}
    assert machine.run("undo").returncode == 0
    assert machine.held() == before


def test_what_a_switch_of_the_scheduler_resets_since_linux_7_comes_back(tmp_path: Path) -> None:
    machine = Sandbox(tmp_path, profile(knobs={"scheduler": "mq-deadline"}))
    for disk in ("sda", "sdb"):
        machine.put(f"sys/block/{disk}/queue/async_depth", "16")
    before = machine.held()
    text = machine.script.read_text()
    store = 'echo "$2" >"$1" || return 1\n'
    reset = '    case $1 in */scheduler) echo 7 >"${1%/*}/async_depth" ;; esac\n'
    assert store in text
    machine.script.write_text(text.replace(store, store + reset))
    assert machine.run("apply").returncode == 0
    # Stands for the kernel, which shows the choice in brackets.
    for disk in ("sda", "sdb"):
        machine.put(f"sys/block/{disk}/queue/scheduler", "[mq-deadline] kyber none")
    assert machine.run("undo").returncode == 0
    after = machine.held()
    assert {p: t for p, t in after.items() if "async_depth" in p} == {
        p: t for p, t in before.items() if "async_depth" in p
    }


def test_what_was_started_anew_is_left_as_it_is(tmp_path: Path, theirs: Profile) -> None:
    machine = Sandbox(tmp_path / "machine", theirs)
    before = machine.held()
    assert machine.run("apply").returncode == 0
    disk = machine.root / "sys/block/sdb"
    shutil.copytree(disk, gone := disk.with_name("gone"), symlinks=True)
    shutil.rmtree(disk)
    gone.rename(disk)
    left = {p: t for p, t in machine.held().items() if "/sdb/" in p}
    assert machine.run("undo").returncode == 0
    after = machine.held()
    assert {p: after[p] for p in left} == left
    path = "sys/block/sda/queue/nr_requests"
    assert after[path] == before[path]


def test_what_an_earlier_script_saved_is_not_misread(tmp_path: Path, theirs: Profile) -> None:
    machine = Sandbox(tmp_path / "machine", theirs)
    assert machine.run("apply").returncode == 0
    saved = machine.root / "run/autotune-profile" / UUID
    saved.write_text(f"{machine.block}/md/rmw_level 0\n")
    for word in ("undo", "apply"):
        done = machine.run(word)
        assert (done.returncode, "earlier version" in done.stderr) == (2, True)


@dataclass
class Two:
    """A machine, the scripts of two profiles for it, and what it had before either."""

    machine: Sandbox
    older: Path
    newer: Path
    before: dict[str, str]

    def do(self, word: str, script: Path) -> None:
        done = self.machine.run(word, script)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout

    def are_undone(self) -> bool:
        """Whether all is as before, and nothing but that is kept."""
        kept = {path.name for path in (self.machine.root / "run").rglob("*") if path.is_file()}
        return self.machine.held() == self.before and kept == {"lock"}


@pytest.fixture
def two(tmp_path: Path) -> Two:
    machine = Sandbox(tmp_path / "machine", profile())
    # As they read when they have been written.
    for file, text in {"min": "1000", "max": "200000"}.items():
        machine.put(f"sys/block/md0/md/sync_speed_{file}", text)
    machine.put("sys/block/md0/md/sync_io_depth", "32")
    for disk in ("sda", "sdb"):
        machine.put(f"sys/block/{disk}/queue/scheduler", "kyber")
    machine.put("sys/block/md0/md/preread_bypass_threshold", "200")
    few = {"nr_requests": 32, "preread_bypass_threshold": 8, "rmw_level": 0}
    return Two(
        machine,
        machine.export(profile(name="few", knobs=few)),
        machine.export(profile(name="many")),
        machine.held(),
    )


@pytest.mark.parametrize("orders", ["AB-AB", "AB-BA", "BA-AB", "BA-BA", "ABA-BA", "AB-B"])
def test_what_two_profiles_have_set_is_undone_in_any_order(two: Two, orders: str) -> None:
    scripts = {"A": two.older, "B": two.newer}
    applied, undone = orders.split("-")
    # The kernel refuses a threshold above the cache, and resets a queue with its scheduler.
    text = "".join(
        f"    case $1 in {case} esac\n"
        for case in (
            '*/scheduler) echo 7 >"${1%/*}/nr_requests" ;;',
            '*/preread_bypass_threshold) [ "$2" -le "$(cat "${1%/*}/stripe_cache_size")" ] || '
            "return 1 ;;",
        )
    )
    for script in scripts.values():
        store = '    echo "$2" >"$1" || return 1\n'
        assert store in script.read_text()
        script.write_text(script.read_text().replace(store, text + store))
    for each in applied:
        two.do("apply", scripts[each])
        assert two.machine.run("status", scripts[each]).returncode == 0
    for each in undone:
        two.do("undo", scripts[each])
    assert two.are_undone()


@pytest.mark.parametrize("first", ["md0", "md1"])
def test_what_two_arrays_on_the_same_disks_have_set_goes_back_with_the_last(
    two: Two, first: str
) -> None:
    """As where /boot and / are arrays on partitions of the same disks."""
    machine, other = two.machine, UUID[::-1]
    shutil.copytree(machine.block, machine.root / "sys/block/md1", symlinks=True)
    machine.put("sys/block/md1/md/uuid", other)
    (machine.root / "dev/md1").touch()
    before = machine.held()
    for device in ("md0", "md1"):
        assert machine.run("apply", two.newer, device).returncode == 0
    set_by_both = machine.held()["sys/block/sda/queue/nr_requests"]
    assert set_by_both != before["sys/block/sda/queue/nr_requests"]
    done = machine.run("undo", two.newer, first)
    assert done.returncode == 0
    assert "sda/queue/nr_requests stays as it is until the other array's" in done.stderr
    assert machine.held()["sys/block/sda/queue/nr_requests"] == set_by_both
    last = machine.run("undo", two.newer, "md1" if first == "md0" else "md0")
    assert (last.returncode, last.stderr) == (0, "")
    assert machine.held() == before


@pytest.mark.parametrize("first", ["md0", "md1"])
def test_what_a_scheduler_of_two_arrays_disks_was_set_to_comes_back_with_it(
    two: Two, first: str
) -> None:
    """A switch takes it away before the second one looks, and the way back resets it."""
    machine = two.machine
    shutil.copytree(machine.block, machine.root / "sys/block/md1", symlinks=True)
    machine.put("sys/block/md1/md/uuid", UUID[::-1])
    (machine.root / "dev/md1").touch()
    own = machine.root / "sys/block/sda/queue/iosched/writes_starved"
    own.write_text("5\n")
    before = machine.held()
    assert machine.run("apply", two.newer, "md0").returncode == 0
    own.unlink()
    assert machine.run("apply", two.newer, "md1").returncode == 0
    assert machine.run("undo", two.newer, first).returncode == 0
    own.write_text("2\n")
    last = machine.run("undo", two.newer, "md1" if first == "md0" else "md0")
    assert (last.returncode, last.stderr) == (0, "")
    assert machine.held() == before


def test_an_array_that_does_not_run_any_more_holds_no_disk(two: Two) -> None:
    machine, other = two.machine, UUID[::-1]
    before = machine.held()
    shutil.copytree(machine.block, machine.root / "sys/block/md1", symlinks=True)
    machine.put("sys/block/md1/md/uuid", other)
    (machine.root / "dev/md1").touch()
    assert machine.run("apply", two.newer, "md1").returncode == 0
    shutil.rmtree(machine.root / "sys/block/md1")
    assert machine.run("apply", two.newer).returncode == 0
    done = machine.run("undo", two.newer)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.held() == before


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_keeps_nothing_from_going_back(
    two: Two, shell: str, closed: str
) -> None:
    place = two.machine.root / "dev/md0"
    for word in ("apply", "undo"):
        command = f"exec {closed}; exec {shell} {two.newer} {word} {place}"
        done = subprocess.run(["dash", "-c", command], capture_output=True, check=False)
        assert done.returncode == 0
        assert two.are_undone() == (word == "undo")


@pytest.mark.parametrize("where", ["journal", "applied"])
def test_a_command_that_begins_as_the_script_saves_has_its_way(two: Two, where: str) -> None:
    """It takes what is there for the original values, as the script does."""
    machine = two.machine
    theirs = machine.root / f"var/lib/autotune/{where}/{UUID}.jsonl"
    begins = f'mkdir -p "{theirs.parent}"; echo this-boot >"{theirs}"'
    text, saves = two.newer.read_text(), 'mv "$saved.part" "$saved"\n'
    assert saves in text
    two.newer.write_text(text.replace(saves, f"{saves[:-1]} && {{ {begins}; }}\n"))
    done = machine.run("apply", two.newer)
    assert done.returncode == 2
    assert "autotune" in done.stderr
    assert two.are_undone()


@pytest.mark.parametrize("tool", ["ls", "cat", "grep", "sed", "tr", "readlink"])
def test_undo_forgets_nothing_where_a_tool_cannot_run(two: Two, tool: str, tmp_path: Path) -> None:
    """As where memory is short."""
    two.do("apply", two.newer)
    (tmp_path / tool).write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / tool).chmod(0o755)
    command = f"PATH={tmp_path}:$PATH dash {two.newer} undo {two.machine.root}/dev/md0"
    done = subprocess.run(["dash", "-c", command], capture_output=True, check=False)
    assert two.are_undone() == (done.returncode == 0)
    two.do("undo", two.newer)
    assert two.are_undone()


@pytest.mark.parametrize("how", ["stopped", "gone", "another has its name", "has another name"])
def test_what_an_array_that_is_gone_has_left_on_its_disks_is_undone(two: Two, how: str) -> None:
    """As systemd stops its unit, which is once the device is gone."""
    machine = two.machine
    two.do("apply", two.newer)
    if how == "stopped":
        machine.put("sys/block/md0/md/array_state", "clear")
    elif how == "another has its name":
        machine.put("sys/block/md0/md/uuid", UUID[::-1])
    else:
        name = "md7" if how == "has another name" else "elsewhere"
        place = machine.root / ("sys/block" if name == "md7" else "") / name
        # Assembled anew, so it has another number, too.
        shutil.copytree(machine.block, place, symlinks=True)
        shutil.rmtree(machine.block)
        (machine.root / "dev/md0").rename(machine.root / "dev" / name)
    done = machine.run("undo", two.newer)
    now = {path: text for path, text in machine.held().items() if "/sd" in path}
    undone = now == {path: text for path, text in two.before.items() if "/sd" in path}
    assert (done.returncode, done.stderr, undone) == (0, "", True)
    kept = {path.name for path in (machine.root / "run").rglob("*") if path.is_file()}
    assert kept == {"lock"}


@pytest.mark.parametrize(("file", "refused"), [("scheduler", True), ("", False)])
def test_what_autotune_has_applied_on_its_disks_is_not_taken_for_the_original(
    tmp_path: Path, file: str, refused: bool
) -> None:
    """For another array on the same disks."""
    machine = Sandbox(tmp_path, profile())
    written = f'{{"kind": "write", "path": "/sys/block/sda/queue/{file}"}}\n' if file else ""
    record = f'{{"boot": "this-boot", "originals": {{"/sys/block/sda/queue/x": "1"}}}}\n{written}'
    machine.put("var/lib/autotune/applied/other.jsonl", record)
    done = machine.run("apply")
    assert done.returncode == (2 if refused else 0)
    assert ("run autotune restore --all --state-dir " in done.stderr) == refused


@pytest.mark.parametrize("device", ["sda", "sda/sda1"])
def test_what_udev_has_set_for_another_array_is_not_taken_for_the_original(
    tmp_path: Path, device: str
) -> None:
    machine = Sandbox(tmp_path, profile())
    machine.put(f"sys/block/{device}/dev", "8:1")
    machine.put("run/udev/data/b8:1", "S:disk/by-id/x\nE:ID_FS_TYPE=linux_raid_member")
    assert machine.run("apply").returncode == 0
    assert machine.run("undo").returncode == 0
    machine.put("run/udev/data/b8:1", f"E:AUTOTUNE_MEMBER=1f\nE:ID_FS_UUID={'0' * 32}")
    done = machine.run("apply")
    assert done.returncode == 2
    name = Path(device).name
    assert f"udev has set {name} for another array" in done.stderr
    machine.put(f"etc/autotune/persisted/{'0' * 32}.json", "{}")
    done = machine.run("apply")
    assert done.returncode == 2
    assert "A profile of autotune is persisted on disks of" in done.stderr


def test_what_udev_has_set_by_the_exported_rule_is_no_others(tmp_path: Path) -> None:
    machine = Sandbox(tmp_path, profile())
    machine.put("sys/block/sda/dev", "8:1")
    own = UUID.replace(":", "-")
    machine.put("run/udev/data/b8:1", f"E:AUTOTUNE_MEMBER=1f\nE:ID_FS_UUID={own}")
    assert machine.run("apply").returncode == 0


def test_what_unpersist_has_recorded_is_not_taken_for_the_original(tmp_path: Path) -> None:
    machine = Sandbox(tmp_path, profile())
    line = '{"kind": "first", "originals": {"/sys/block/sda/queue/scheduler": "none"}, "now": {}}'
    machine.put("var/lib/autotune/applied/other.jsonl", f'{{"boot": "this-boot"}}\n{line}')
    done = machine.run("apply")
    assert done.returncode == 2
    assert "run autotune restore --all --state-dir " in done.stderr


@pytest.mark.parametrize(
    ("name", "boot", "disk", "refused"),
    [
        ("other", "this-boot", "sda", True),
        ("other", "another", "sda", False),
        ("other", "this-boot", "sdz", False),
        ("other.waiting", "this-boot", "sda", False),
    ],
)
def test_what_a_run_on_its_disks_tries_is_not_taken_for_the_original(
    tmp_path: Path, name: str, boot: str, disk: str, refused: bool
) -> None:
    machine = Sandbox(tmp_path, profile())
    before = machine.held()
    originals = f'{{"/sys/block/{disk}/queue/scheduler": "kyber"}}'
    record = f'{{"boot": "{boot}", "originals": {originals}}}\n'
    machine.put(f"var/lib/autotune/journal/{name}.jsonl", record)
    done = machine.run("apply")
    assert done.returncode == (2 if refused else 0), done.stderr
    assert ("A run of autotune has disks" in done.stderr) == refused
    assert (machine.held() == before) == refused


def test_what_is_persisted_is_not_taken_for_the_original(tmp_path: Path) -> None:
    """After a boot udev has set it, and nothing else speaks of it."""
    machine = Sandbox(tmp_path, profile())
    before = machine.held()
    machine.put(f"etc/autotune/persisted/{UUID}.json", "{}")
    done = machine.run("apply")
    assert done.returncode == 2
    assert "autotune has persisted a profile for" in done.stderr
    assert machine.held() == before


@pytest.mark.parametrize("folder", ["applied", "journal"])
def test_an_array_of_old_metadata_is_known_by_the_name_that_autotune_has_for_it(
    tmp_path: Path, folder: str
) -> None:
    machine = Sandbox(tmp_path, profile())
    machine.put("sys/block/md0/md/metadata_version", "0.90")
    machine.put("sys/block/md0/md/uuid", "8608d970-73fe0102-03040506-0708090a")
    swapped = "70d90886" + "0201fe73" + "06050403" + "0a090807"
    machine.put(f"var/lib/autotune/{folder}/{swapped}.jsonl", '{"boot": "this-boot"}')
    done = machine.run("apply")
    assert done.returncode == 2
    assert "run autotune restore" in done.stderr


@pytest.mark.parametrize("noted", ["array-other", "disk-sda", ""])
@pytest.mark.parametrize("left", ["applied", "journal"])
def test_what_is_in_force_by_another_folder_is_not_taken_for_the_original(
    tmp_path: Path, noted: str, left: str
) -> None:
    """The locks remember it until the next boot."""
    machine = Sandbox(tmp_path, profile())
    before, folder = machine.held(), machine.root / "srv/my state"
    machine.put(f"srv/my state/{left}/{UUID}.jsonl", '{"boot": "this-boot"}')
    if noted:
        machine.put(f"run/autotune/{noted}", f"123\n{folder}/journal/other.jsonl\n")
    done = machine.run("apply")
    assert done.returncode == (2 if noted else 0), done.stderr
    assert (f"--state-dir {folder}" in done.stderr) == bool(noted)
    assert (machine.held() == before) == bool(noted)


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("kind", ["applied", "journal"])
def test_what_is_recorded_where_nothing_is_mounted_is_not_taken_for_the_original(
    tmp_path: Path, kind: str, gone: bool
) -> None:
    machine = Sandbox(tmp_path, profile())
    before, record = machine.held(), machine.root / f"not mounted/{kind}/{UUID}.jsonl"
    record.parent.mkdir(parents=True)
    record.touch()
    noted_records.note(record, machine.root)
    record.unlink()
    place = record.parents[1]
    mounted = place.rename(machine.root / "elsewhere")
    # Another one in its place.
    place.mkdir()
    for _ in range(2):
        done = machine.run("apply")
        assert done.returncode == 2
        assert f"--state-dir {place}" in done.stderr
        assert machine.held() == before
        record.parent.mkdir(exist_ok=True)
    shutil.rmtree(place)
    mounted.rename(place)
    # From where it was, somebody has removed the record.
    if gone:
        record.parent.rmdir()
    assert machine.run("apply").returncode == 0


@pytest.mark.parametrize(("disk", "code"), [("sda", 2), ("sdz", 0)])
@pytest.mark.parametrize("kind", ["applied", "journal"])
def test_what_is_recorded_elsewhere_of_an_array_on_the_same_disks_is_refused_too(
    tmp_path: Path, kind: str, disk: str, code: int
) -> None:
    machine = Sandbox(tmp_path, profile())
    before, folder = machine.held(), machine.root / "not mounted"
    machine.put(f"run/autotune/records/{kind}-other", f"{folder}/{kind}/other.jsonl\n1 2 3 /\n")
    machine.put(f"run/autotune/disk-{disk}", f"123\n{folder}/journal/other.jsonl\n")
    done = machine.run("apply")
    assert done.returncode == code, done.stderr
    assert (machine.held() == before) == bool(code)


@pytest.mark.parametrize("boot", ["this-boot", "another"])
def test_what_autotune_has_applied_is_not_taken_for_the_original(tmp_path: Path, boot: str) -> None:
    machine = Sandbox(tmp_path, profile())
    before = machine.held()
    machine.put(f"var/lib/autotune/applied/{UUID}.jsonl", f'{{"boot": "{boot}"}}')
    done = machine.run("apply")
    assert done.returncode == (2 if boot == "this-boot" else 0), done.stderr
    assert ("run autotune restore" in done.stderr) == (boot == "this-boot")
    assert (machine.held() == before) == (boot == "this-boot")


@pytest.mark.parametrize("others", [True, False])
def test_what_an_earlier_script_has_set_is_undone(two: Two, others: bool) -> None:
    """Each profile's had a record of its own."""
    two.do("apply", two.older)
    folder = two.machine.root / "run/autotune-profile"
    (folder / UUID).rename(record := folder / f"few-{UUID}")
    if others:
        two.do("apply", two.newer)
        two.do("undo", two.newer)
        # It is for that profile's script to forget it.
        assert two.machine.held() == two.before
        assert record.exists()
    two.do("undo", two.older)
    assert two.are_undone()


def test_what_fails_leaves_another_profile_in_force(two: Two) -> None:
    two.do("apply", two.older)
    before = two.machine.held()
    two.machine.put("sys/block/md0/md/reshape_position", "4096")
    done = two.machine.run("apply", two.newer)
    assert (done.returncode, "all are as they were" in done.stderr) == (2, True)
    (two.machine.block / "md/reshape_position").unlink()
    assert two.machine.held() == before
    two.do("undo", two.older)
    assert two.are_undone()


@pytest.mark.parametrize(
    ("file", "busy", "speeds"),
    [
        ("sync_action", "recover", ("1500", "250000")),
        ("reshape_position", "4096", ("600000", "700000")),
    ],
)
def test_what_a_sync_keeps_from_going_back_keeps_nothing_else(
    tmp_path: Path, file: str, busy: str, speeds: tuple[str, str]
) -> None:
    """At a min of 1 a rebuild of an array in use would stand still."""
    machine = Sandbox(tmp_path / "machine", profile())
    for speed, text in zip(("min", "max"), speeds, strict=True):
        machine.put(f"sys/block/md0/md/sync_speed_{speed}", text)
    idle = {"sync_action": "idle", "reshape_position": "none"}
    machine.put("sys/block/md0/md/reshape_position", "none")
    before = {path: re.sub(r".*\[|\].*| .*", "", text) for path, text in machine.held().items()}
    assert machine.run("apply").returncode == 0
    machine.put(f"sys/block/md0/md/{file}", busy)
    done = machine.run("undo")
    assert (done.returncode, "could not be put back" in done.stderr) == (2, True)
    left = {
        Path(path).name
        for path, text in machine.held().items()
        if re.sub(r" \(.*", "", text) not in (before[path], "system")
    }
    kept = "group_thread_cnt" if file == "sync_action" else "stripe_cache_size"
    assert left == {file, kept}
    machine.put(f"sys/block/md0/md/{file}", idle[file])
    assert machine.run("undo").returncode == 0
    assert "nothing to undo" in machine.run("undo").stdout


def test_scripts_are_clean(tmp_path: Path) -> None:
    for name in ("shell", "tuned"):
        for path, text in FORMATS[name](profile(), UUID).items():
            if not text.startswith("#!"):
                continue
            script = tmp_path / Path(path).name
            script.write_text(text)
            for command in (["sh", "-n"], ["dash", "-n"], ["shellcheck", "--shell=sh"]):
                done = subprocess.run(
                    [*command, script], capture_output=True, text=True, check=False
                )
                assert (done.returncode, done.stdout) == (0, ""), done.stdout


@pytest.mark.parametrize("lacks", ["nothing", "wbt_lat_usec"])
def test_what_cannot_be_saved_whole_is_not_changed(tmp_path: Path, lacks: str) -> None:
    """A full disk refuses some lines and takes others."""
    machine = Sandbox(tmp_path / "machine", profile())
    for disk in ("sda", "sdb"):
        (machine.root / "sys/block" / disk / "queue" / lacks).unlink(missing_ok=True)
    before = machine.held()
    # `echo` of these lines fails, as on a disk that is full for a moment.
    text = machine.script.read_text()
    line = 'echo "$device $found $file $text"'
    assert line in text
    refused = f"case $file in md/rmw_level) false ;; *) {line} ;; esac"
    machine.script.write_text(text.replace(line, f"{{ {refused}; }}"))
    done = machine.run("apply")
    assert (done.returncode, "cannot be saved" in done.stderr) == (2, True)
    assert machine.held() == before


def test_a_full_disk_keeps_nothing_from_going_back(tmp_path: Path) -> None:
    machine = Sandbox(tmp_path / "machine", profile())
    before = machine.held()
    with small_disk(machine.root / "run/autotune-profile") as saved:
        assert machine.run("apply").returncode == 0
        changed = machine.held()
        fill(saved)
        done = machine.run("undo")
        assert (done.returncode, done.stderr) == (0, "")
        after = machine.held()
        back = {path for path in before if changed[path] != before[path]}
        assert back
        assert all(after[path] != changed[path] for path in back)
        assert "nothing to undo" in machine.run("undo").stdout


def test_two_at_once_leave_what_undo_needs(tmp_path: Path) -> None:
    for number in range(10):
        machine = Sandbox(tmp_path / str(number), profile())
        before = machine.held()
        command = ["dash", machine.script, "apply", machine.root / "dev/md0"]
        both = []
        for _ in range(2):
            both.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            time.sleep(0.02 * number)
        assert [process.wait() for process in both] == [0, 0]
        changed = machine.held()
        machine.run("undo")
        after = machine.held()
        back = {path for path in before if changed[path] != before[path]}
        assert back
        assert all(after[path] != changed[path] for path in back)


def test_nothing_is_undone_under_a_run(tmp_path: Path) -> None:
    machine = Sandbox(tmp_path, profile())
    machine.run("apply")
    changed = machine.held()
    machine.put(f"var/lib/autotune/journal/{UUID}.jsonl", "{}")
    done = machine.run("undo")
    assert done.returncode == 2
    assert "A run of autotune has" in done.stderr
    assert machine.held() == changed
