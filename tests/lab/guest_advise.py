"""`autotune advise` on real stacks: each has one fault, which is found, and nothing else is. Each
command, run as it is printed, mends it. In `advise.toml`; `test_run.py` runs this there."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import partitioned
import pytest
from guest import autotune, autotune_json, read, wait_until
from partitioned import slow_down, stopped, wait_idle
from volumes import LVM, sh

from autotune.lab.guest.system import load_modules
from autotune.system import programs

DEVICE = "/dev/md0"
MOUNT = Path("/mnt/here")
SSDS = [f"/dev/vd{letter}" for letter in "abcde"]
HDDS = [f"/dev/vd{letter}" for letter in "fg"]
STRIPE = ("--chunk=64",)


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    MOUNT.mkdir(parents=True)
    load_modules(("dm-mirror", "dm-crypt", "loop", "raid0"))
    Path("/tmp/lvm").mkdir()
    Path("/tmp/lvm/lvm.conf").write_text(LVM)
    # There is no udev here that device-mapper could wait for.
    os.environ.update(LVM_SYSTEM_DIR="/tmp/lvm", DM_DISABLE_UDEV="1")


@pytest.fixture(autouse=True)
def blank() -> Iterator[None]:
    """No array is there after a test, and no disk knows of one."""
    yield
    subprocess.run(["umount", MOUNT], check=False, capture_output=True)
    for folder in Path("/sys/block").glob("md*"):
        wait_until(lambda name=folder.name: stopped(name), 60, f"{folder.name} to stop")
    for disk in [*SSDS, *HDDS]:
        parts = [str(path) for path in sorted(Path("/dev").glob(f"{Path(disk).name}[0-9]*"))]
        sh("wipefs", "-q", "-a", *parts, disk)
        slow_down(disk[-1], 1)
        scheduler = Path("/sys/block") / Path(disk).name / "queue/scheduler"
        scheduler.write_text("mq-deadline")


def advise(state: Path, *words: object) -> Any:
    return autotune_json("advise", DEVICE, *words, state=state)


def measured(state: Path) -> Any:
    """What is found once nobody uses the disks: mkfs writes on in the background for a while."""
    said: list[Any] = []

    def is_measured() -> bool:
        said.append(advise(state))
        return said[-1]["not_looked_at"] == {}

    wait_until(is_measured, 180, f"a measurement: {said}")
    return said[-1]["findings"]


def found(state: Path) -> list[str]:
    return [finding["name"] for finding in advise(state, "--no-measure")["findings"]]


def only(state: Path, name: str) -> Any:
    """The one finding, which has this name; `doctor` counts it too."""
    findings = advise(state, "--no-measure")["findings"]
    assert [finding["name"] for finding in findings] == [name], findings
    print(findings[0]["seen"], *findings[0]["commands"], sep="\n  ")
    assert "advise: 1 finding;" in autotune("doctor", DEVICE, state=state).stdout
    (report,) = autotune_json("report", DEVICE, state=state)
    assert report["advice"]["findings"] == findings
    return findings[0]


def mend(finding: Any, new: str = "") -> None:
    """Run what was printed, NEW being a disk to spare."""
    assert finding["commands"]
    for command in finding["commands"]:
        text = command.removeprefix("# ")
        assert (text == command) == finding["live"]
        text = text.replace("NEW", new) if new else text
        # The guest has no systemd.
        if not text.startswith("systemctl "):
            done = subprocess.run(text, shell=True, check=False, capture_output=True, text=True)
            assert done.returncode == 0, (text, done.stdout, done.stderr)
    for name in re.findall(r"--replace /dev/(\w+)", str(finding["commands"])):
        state = Path(f"/sys/block/md0/md/dev-{name}/state")
        wait_until(lambda state=state: "faulty" in read(state), 180, f"{name} to be replaced")
    if Path("/sys/block/md0/md/sync_action").exists():
        wait_idle("md0")


@contextlib.contextmanager
def mounted(device: str, *options: str) -> Iterator[None]:
    sh("mount", *options, device, MOUNT)
    try:
        yield
    finally:
        sh("umount", MOUNT)


def create(name: str, level: int, devices: Sequence[str], *more: str) -> None:
    """An array without what an earlier one left at its beginning."""
    partitioned.create(name, level, devices, *more)
    sh("wipefs", "-q", "-a", f"/dev/{name}")


def raid5(*more: str) -> None:
    """One of four SSDs, with stripes of 192 KiB."""
    create("md0", 5, SSDS[:4], *STRIPE, *more)


def partition(disk: str, *starts: int) -> None:
    """Partitions of 100 MiB."""
    lines = "".join(f"start={start}, size=100M\n" for start in starts)
    subprocess.run(["sfdisk", "-q", disk], input=lines, text=True, check=True)


def ext4(device: str, *more: str) -> None:
    sh("mkfs.ext4", "-q", "-F", *more, device)


# Four stacks without a fault.


def clean_raid1() -> Iterator[None]:
    create("md0", 1, SSDS[:2])
    ext4(DEVICE)
    with mounted(DEVICE):
        yield


def clean_raid5() -> Iterator[None]:
    create("md0", 5, SSDS[:4])
    sh("mkfs.xfs", "-q", "-f", DEVICE)
    with mounted(DEVICE):
        yield


def clean_raid6() -> Iterator[None]:
    create("md0", 6, SSDS, *STRIPE)
    with group("shelf"):
        device = volume("shelf", 400)
        ext4(device)
        with mounted(device):
            yield


def clean_raid10() -> Iterator[None]:
    create("md0", 10, SSDS[:4])
    yield


@contextlib.contextmanager
def group(name: str, *words: str) -> Iterator[None]:
    sh("pvcreate", "-q", "-ff", "-y", *words, DEVICE)
    sh("vgcreate", "-q", name, DEVICE)
    try:
        yield
    finally:
        sh("vgremove", "-q", "-f", name)


def volume(group: str, size_mib: int) -> str:
    words = ("-q", "-y", "-W", "n", "-Z", "n", "-n", "home", "-L", f"{size_mib}M", group)
    sh("lvcreate", *words)
    return f"/dev/{group}/home"


@pytest.mark.parametrize("stack", [clean_raid1, clean_raid5, clean_raid6, clean_raid10])
def test_a_clean_stack_has_no_findings(stack: Any, tmp_path: Path) -> None:
    with contextlib.contextmanager(stack)():
        sh("sync")
        assert measured(tmp_path) == []
        assert "advise:" not in autotune("doctor", DEVICE, state=tmp_path).stdout


# What begins at the wrong place.


def test_a_member_that_begins_at_sector_63(tmp_path: Path) -> None:
    for disk, start in (("/dev/vda", 2048), ("/dev/vdb", 63), ("/dev/vdc", 2048)):
        partition(disk, start)
    create("md0", 1, ["/dev/vda1", "/dev/vdb1"])
    finding = only(tmp_path, "member-alignment")
    assert "vdb1" in finding["seen"]
    assert not finding["live"]
    mend(finding, "/dev/vdc1")
    assert found(tmp_path) == []


@pytest.mark.slow
def test_a_partition_on_the_array_that_begins_at_sector_63(tmp_path: Path) -> None:
    raid5()
    partition(DEVICE, 63)
    finding = only(tmp_path, "partition-alignment")
    assert not finding["live"]
    mend(finding)
    assert found(tmp_path) == []
    assert read(Path("/sys/class/block/md0p1/start")) == "384"


@pytest.mark.slow
def test_lvm_whose_extents_begin_at_the_wrong_place(tmp_path: Path) -> None:
    raid5()
    sh("pvcreate", "-q", "-y", "/dev/vde")
    with group("shelf", "--dataalignment", "1m"):
        volume("shelf", 64)
        finding = only(tmp_path, "lvm-alignment")
        sh("vgextend", "-q", "shelf", "/dev/vde")
        mend(finding)
        assert found(tmp_path) == []
        sh("pvmove", "/dev/vde", DEVICE)
        assert read(Path("/sys/block/dm-0/slaves/md0/md/level")) == "raid5"
        assert found(tmp_path) == []


@pytest.mark.slow
def test_an_encrypted_device_whose_data_begin_at_the_wrong_place(tmp_path: Path) -> None:
    raid5()
    key = tmp_path / "key"
    key.write_text("secret")
    quick = f"-q --type luks1 --pbkdf-force-iterations 1000 --key-file {key}"

    @contextlib.contextmanager
    def opened() -> Iterator[None]:
        sh("cryptsetup", "open", "--key-file", key, DEVICE, "home")
        try:
            yield
        finally:
            sh("cryptsetup", "close", "home")

    sh("cryptsetup", "luksFormat", *quick.split(), "--align-payload=8", DEVICE)
    with opened():
        finding = only(tmp_path, "crypt-alignment")
    assert not finding["live"]
    (command,) = finding["commands"]
    sh(*command.removeprefix("# ").split(), *quick.split())
    with opened():
        assert found(tmp_path) == []


# Filesystems that do not know the stripe.


@pytest.mark.slow
def test_an_ext4_without_a_stripe(tmp_path: Path) -> None:
    raid5()
    ext4(DEVICE)
    sh("debugfs", "-w", "-R", "ssv raid_stripe_width 0", DEVICE)
    sh("debugfs", "-w", "-R", "ssv raid_stride 0", DEVICE)
    with mounted(DEVICE):
        finding = only(tmp_path, "ext4-stripe")
        assert "knows no stripe; the array's is 192 KiB" in finding["seen"]
        assert finding["live"]
        mend(finding)
        assert found(tmp_path) == []
    with mounted(DEVICE):
        assert "stripe=48" in Path("/proc/mounts").read_text()
    sh("e2fsck", "-f", "-n", DEVICE)


@pytest.mark.slow
def test_an_ext4_on_an_array_that_has_grown(tmp_path: Path) -> None:
    create("md0", 5, SSDS[:3], *STRIPE, "--size=64M")
    ext4(DEVICE)
    with mounted(DEVICE):
        assert found(tmp_path) == []
        sh("mdadm", DEVICE, "--add", "/dev/vdd")
        sh("mdadm", "--grow", DEVICE, "--raid-devices=4", f"--backup-file={tmp_path}/backup")
        wait_until(lambda: read(Path("/sys/block/md0/md/reshape_position")) == "none", 300)
        wait_idle("md0")
        finding = only(tmp_path, "ext4-stripe")
        assert "made for a stripe of 128 KiB; the array's is 192 KiB" in finding["seen"]
        mend(finding)
        assert found(tmp_path) == []


@pytest.mark.slow
def test_an_xfs_with_another_stripe(tmp_path: Path) -> None:
    raid5()
    sh("mkfs.xfs", "-q", "-f", "-d", "su=64k,sw=2", DEVICE)
    sh("mount", "-o", "nosuid,noexec,noatime", DEVICE, MOUNT)
    folder, export = MOUNT / "public", tmp_path / "export"
    folder.mkdir()
    export.mkdir()
    sh("mount", "--bind", folder, export)
    finding = only(tmp_path, "xfs-stripe")
    assert not finding["live"]
    assert f"It is mounted on {export} too" in finding["note"]
    sh("umount", export)
    mend(only(tmp_path, "xfs-stripe"))
    assert found(tmp_path) == []
    options = sh("findmnt", "--noheadings", "--output", "OPTIONS", MOUNT).strip().split(",")
    assert {"nosuid", "noexec", "noatime", "swidth=384"} <= set(options), options
    # It is kept.
    sh("umount", MOUNT)
    with mounted(DEVICE):
        assert found(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("made", ["noalign", "su=16k,sw=3"])
def test_an_xfs_with_another_stripe_unit_has_no_command(tmp_path: Path, made: str) -> None:
    raid5()
    sh("mkfs.xfs", "-q", "-f", "-d", made, DEVICE)
    with mounted(DEVICE):
        assert only(tmp_path, "xfs-stripe")["commands"] == []


# Mount options.


def test_strictatime(tmp_path: Path) -> None:
    create("md0", 1, SSDS[:2])
    ext4(DEVICE)
    with mounted(DEVICE, "-o", "strictatime"):
        finding = only(tmp_path, "strictatime")
        assert finding["live"]
        mend(finding)
        assert found(tmp_path) == []


@contextlib.contextmanager
def sparse(*names: str) -> Iterator[list[str]]:
    """Devices of 120 GiB that take no room, and that can discard."""
    devices = []
    for name in names:
        file = Path("/run") / name
        with file.open("wb") as opened:
            opened.truncate(120 << 30)
        devices.append(sh("losetup", "--find", "--show", file).strip())
    try:
        yield devices
    finally:
        wait_until(lambda: stopped("md0"))
        for device, name in zip(devices, names, strict=True):
            sh("losetup", "-d", device)
            (Path("/run") / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_discard(tmp_path: Path, kind: str) -> None:
    with sparse("one", "two") as devices:
        create("md0", 1, devices, "--size=1G", "--bitmap=none")
        sh(f"mkfs.{kind}", "-q", DEVICE)
        sh("mount", "-o", "discard", DEVICE, MOUNT)
        mend(only(tmp_path, "online-discard"))
        assert found(tmp_path) == []
        sh("umount", MOUNT)


# The bitmap.


@pytest.mark.slow
def test_no_bitmap(tmp_path: Path) -> None:
    with sparse("one", "two") as devices:
        create("md0", 1, devices, "--bitmap=none")
        finding = only(tmp_path, "no-bitmap")
        assert "autotune forecast /dev/md0" in finding["cost"]
        (finding,) = measured(tmp_path)
        assert "at least, as the disks read now" in finding["cost"]
        assert finding["live"]
        mend(finding)
        assert found(tmp_path) == []


@pytest.mark.slow
def test_a_bitmap_that_is_too_fine(tmp_path: Path) -> None:
    bitmap = Path("/sys/block/md0/md/bitmap")
    as_set = {"backlog": "1024", "time_base": "7"}
    options = ("--write-behind=1024", "--delay=7", "--write-mostly")
    create("md0", 1, SSDS[:2], "--bitmap=internal", "--bitmap-chunk=64K", *options)
    assert {name: read(bitmap / name) for name in as_set} == as_set
    finding = only(tmp_path, "bitmap-chunk")
    assert "stands for 64 KiB" in finding["seen"]
    mend(finding)
    assert found(tmp_path) == []
    assert read(bitmap / "chunksize") == str(64 << 20)
    assert {name: read(bitmap / name) for name in as_set} == as_set


# Members.


@pytest.mark.slow
def test_a_slow_member(tmp_path: Path) -> None:
    raid5("--size=128M")
    slow_down("c", 4)
    (finding,) = measured(tmp_path)
    print(finding["seen"])
    assert finding["name"] == "slow-member"
    assert finding["seen"].startswith("vdc reads at 0.")
    assert found(tmp_path) == []
    mend(finding, "/dev/vde")
    assert measured(tmp_path) == []


@pytest.mark.slow
def test_two_members_on_one_disk(tmp_path: Path) -> None:
    partition("/dev/vda", 2048, 400000)
    partition("/dev/vdb", 2048)
    partition("/dev/vdc", 2048)
    create("md0", 5, ["/dev/vda1", "/dev/vda2", "/dev/vdb1"])
    finding = only(tmp_path, "same-disk")
    assert "vda1 and vda2" in finding["seen"]
    mend(finding, "/dev/vdc1")
    assert found(tmp_path) == []


@pytest.mark.slow
def test_hard_disks_that_two_arrays_share(tmp_path: Path) -> None:
    for disk in HDDS:
        partition(disk, 2048, 300000)
    create("md0", 1, ["/dev/vdf1", "/dev/vdg1"])
    create("md1", 1, ["/dev/vdf2", "/dev/vdg2"])
    assert "/dev/md1" in only(tmp_path, "shared-disk")["seen"]
    sh("mdadm", "--stop", "/dev/md1")
    assert found(tmp_path) == []


@pytest.mark.slow
def test_a_hard_disk_beside_flash(tmp_path: Path) -> None:
    create("md0", 1, ["/dev/vda", "/dev/vdf"])
    finding = only(tmp_path, "mixed-media")
    assert finding["live"]
    mend(finding)
    assert found(tmp_path) == []


# Their queues.


@pytest.mark.slow
def test_a_scheduler_unlike_the_others(tmp_path: Path) -> None:
    create("md0", 5, SSDS[:3])
    Path("/sys/block/vdb/queue/scheduler").write_text("bfq")
    mend(only(tmp_path, "scheduler"))
    assert found(tmp_path) == []


# What is not looked at, or not to be told.


def without(tools: Sequence[str], folder: Path) -> str:
    """A PATH on which all programs are but these."""
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in Path(place).glob("*"):
            if program.name not in tools and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_a_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raid5()
    monkeypatch.setattr(programs, "ADMINISTRATORS", ())
    with group("shelf"):
        device = volume("shelf", 100)
        ext4(device)
        with mounted(device):
            tools = ("dumpe2fs", "pvs", "fio")
            monkeypatch.setenv("PATH", without(tools, tmp_path / "tools"))
            document = advise(tmp_path)
            assert document["findings"] == []
            reasons = {
                name: text.split(" (")[0] for name, text in document["not_looked_at"].items()
            }
            assert reasons == {
                "ext4-stripe": "needs e2fsprogs",
                "lvm-alignment": "needs lvm2",
                "slow-member": "needs fio",
            }
            monkeypatch.setenv("PATH", without(("dmsetup",), tmp_path / "others"))
            missing = advise(tmp_path, "--no-measure")["not_looked_at"]
            assert "dmsetup" in missing["ext4-stripe"]


def test_a_finding_is_silenced_in_the_configuration(tmp_path: Path) -> None:
    create("md0", 5, SSDS[:3])
    Path("/sys/block/vdb/queue/scheduler").write_text("bfq")
    assert found(tmp_path) == ["scheduler"]
    config = Path("/etc/autotune/config.toml")
    config.parent.mkdir(exist_ok=True)
    config.write_text('[advise]\nsilence = ["scheduler"]\n')
    try:
        document = advise(tmp_path, "--no-measure")
        assert document["findings"] == []
        assert [finding["name"] for finding in document["silenced"]] == ["scheduler"]
        assert "advise:" not in autotune("doctor", DEVICE, state=tmp_path).stdout
    finally:
        config.unlink()


def test_what_is_no_array_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = autotune("advise", "/dev/vda", state=tmp_path)
    assert done.returncode == 2
    assert "/dev/vda is not an md array but a disk" in done.stderr
