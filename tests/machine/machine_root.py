"""A server whose root filesystem lies on the array, as most at home have it, of disks with queues
of their own. In this order."""

import json

import pytest
from arrays import KEPT, READ, has_cleaned_up, name_of, start_run
from emulator import Disks
from machine import COMMAND_S, Machine
from ways import Way

MOVE = (
    "mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=4 --chunk=64 "
    "/dev/sd[abcd] && mkfs.ext4 -q -L array /dev/md0 && "
    "mdadm --detail --scan >> /etc/mdadm/mdadm.conf && update-initramfs -u && "
    "apt-get clean && rm -f /root/*.deb /root/*.whl && "
    "mkdir -p /new && mount /dev/md0 /new && cp -ax / /new && mkdir -p /new/first && "
    # Emulated, a disk may need longer to be seen than systemd waits by itself.
    "printf '%s\\n' 'LABEL=array / ext4 defaults 0 1' "
    "'/dev/vda /first ext4 x-systemd.device-timeout=30min 0 2' "
    "'/first/boot /boot none bind 0 0' > /new/etc/fstab && umount /new"
)
DISKS = "/sys/block/md*/slaves/*"
EVERY = (
    "cd /sys/block/md*/md && grep -H . stripe_cache_size sync_speed_m?? group_thread_cnt rmw_level "
    "preread_bypass_threshold safe_mode_delay sync_io_depth ../queue/read_ahead_kb "
    f"../queue/max_sectors_kb {DISKS}/queue/scheduler {DISKS}/queue/nr_requests "
    f"{DISKS}/queue/max_sectors_kb {DISKS}/queue/wbt_lat_usec {DISKS}/queue/rq_affinity "
    f"{DISKS}/queue/iosched/* {DISKS}/device/queue_depth 2> /dev/null | sed 's:/sd[a-e]/:/disk/:'"
)
"""Each file that a setting of this array has, with what it reads; some kernels lack one. Disks may
have other names after a boot."""
SETTINGS = {
    "mq-deadline": {
        **{"stripe_cache_size": 512, "read_ahead_kb": 1024, "array_max_sectors_kb": 384},
        **{"sync_speed_min": 2000, "sync_speed_max": 250_000, "sync_io_depth": 64},
        **{"group_thread_cnt": 2, "rmw_level": 0, "preread_bypass_threshold": 2},
        **{"safe_mode_delay": 5000, "nr_requests": 64, "max_sectors_kb": 256},
        **{"wbt_lat_usec": 10_000, "read_expire": 200, "fifo_batch": 4, "queue_depth": 16},
        **{"rq_affinity": 2, "scheduler": "mq-deadline"},
    },
    "bfq": {"low_latency": 0, "rq_affinity": 0, "queue_depth": 1, "scheduler": "bfq"},
}
"""Each setting with another value than the kernel's, by the scheduler that it goes with."""
WIDENED = {"safe_mode_delay", "read_expire", "fifo_batch", "low_latency"}
WIDENED |= {"queue_depth", "rq_affinity"}
"""Those that not every lab has."""


@pytest.fixture(scope="session")
def disks() -> Disks:
    """With room for a whole system and a scratch file."""
    return Disks(mib=1024, scsi=True)


def test_move(machine: Machine, way: Way) -> None:
    """With root on the array: it boots from there"""
    machine.do(f"{way.install} && {MOVE}", timeout_s=2 * COMMAND_S)
    machine.root = "LABEL=array"
    machine.reboot()
    assert machine.do("findmnt -no SOURCE /").strip() == f"/dev/{name_of(machine)}"
    # The kernel loads a scheduler only once it is asked for.
    machine.run("modprobe -a bfq mq-deadline kyber-iosched")
    machine.do(f"({EVERY}) > /root/found")


def test_every_setting(machine: Machine) -> None:
    """Each setting that an array of SCSI disks has is set, read back and put back"""
    device = f"/dev/{name_of(machine)}"
    shown = machine.do(f"autotune show {device} --json")
    profile = json.loads(machine.do("cat /root/profile.json"))
    for scheduler, knobs in SETTINGS.items():
        here = {name: value for name, value in knobs.items() if f'"{name}"' in shown}
        print(f"{scheduler}: {', '.join(here)}; not here: {', '.join({*knobs} - {*here})}")
        assert {*knobs} & WIDENED <= {*here}
        text = json.dumps({**profile, "name": "every", "knobs": here})
        machine.do(f"cat > /root/every.json <<'END'\n{text}\nEND")
        done = json.loads(machine.do(f"autotune apply /root/every.json {device} --json"))
        assert done["after"] == here
        others = {name for name, value in here.items() if done["before"][name] != value}
        assert others >= {*here} - {"scheduler"}
        machine.do(f"autotune status && autotune restore {device}")
        machine.do(f"({EVERY}) | diff /root/found -")


def test_run(machine: Machine) -> None:
    """With root on the array: `doctor`, and a short run of all settings"""
    device = f"/dev/{name_of(machine)}"
    machine.do(f"autotune doctor {device}")
    machine.do(
        # Emulated, the default strategy takes minutes to choose among so many settings.
        f"autotune run {device} --workload /root/workload.toml --knobs all --strategy recipe "
        "--trials 2 --time 30min --json",
        timeout_s=2 * COMMAND_S,
    )
    machine.do(f"({EVERY}) | diff /root/found -")
    trials = json.loads(machine.do("autotune history 1 --json"))
    print(json.dumps(trials)[:20_000])


def test_persist(machine: Machine) -> None:
    """With root on the array: `apply --persist`, and a reboot"""
    machine.do(f"autotune apply /root/profile.json /dev/{name_of(machine)} --persist")
    assert machine.do(READ).split() == KEPT
    machine.do("update-initramfs -u")
    machine.reboot()
    assert machine.do(READ).split() == KEPT
    machine.do("autotune status")


def test_power_cut(machine: Machine) -> None:
    """With root on the array: a power cut in mid-run, and nothing is half after the boot"""
    machine.do("autotune service install")
    start_run(machine, name_of(machine), "", "quick")
    machine.do("sync")
    machine.cut()
    machine.boot()
    has_cleaned_up(machine)
    assert machine.do(READ).split() == KEPT


def test_remove(machine: Machine, way: Way) -> None:
    """With root on the array: removed, it leaves no changed setting"""
    machine.do(way.remove)
    machine.run("modprobe -a bfq mq-deadline kyber-iosched")
    machine.do(f"({EVERY}) | diff /root/found -")
    machine.reboot()
    machine.run("modprobe -a bfq mq-deadline kyber-iosched")
    machine.do(f"({EVERY}) | diff /root/found -")
