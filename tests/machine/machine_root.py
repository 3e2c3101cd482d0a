"""A server whose root filesystem lies on the array, as most at home have it. In this order."""

from arrays import KEPT, READ, has_cleaned_up, name_of
from machine import COMMAND_S, Machine
from ways import Way

MOVE = (
    "mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=4 --chunk=64 "
    "/dev/vdb /dev/vdc /dev/vdd /dev/vde && mkfs.ext4 -q -L array /dev/md0 && "
    "mdadm --detail --scan >> /etc/mdadm/mdadm.conf && update-initramfs -u && "
    "mkdir -p /new && mount /dev/md0 /new && cp -ax / /new && mkdir -p /new/first && "
    "printf '%s\\n' 'LABEL=array / ext4 defaults 0 1' '/dev/vda /first ext4 defaults 0 2' "
    "'/first/boot /boot none bind 0 0' > /new/etc/fstab && umount /new"
)


def test_move(machine: Machine, way: Way) -> None:
    """With root on the array: it boots from there"""
    machine.do(f"{way.install} && {MOVE}", timeout_s=2 * COMMAND_S)
    machine.root = "LABEL=array"
    machine.reboot()
    assert machine.do("findmnt -no SOURCE /").strip() == f"/dev/{name_of(machine)}"
    machine.do(f"({READ}) > /root/found")


def test_run(machine: Machine) -> None:
    """With root on the array: `doctor`, and a short run"""
    device = f"/dev/{name_of(machine)}"
    machine.do(f"autotune doctor {device}")
    machine.do(
        f"autotune run {device} --workload /root/workload.toml --trials 2 --time 30min --json",
        timeout_s=2 * COMMAND_S,
    )
    machine.do(f"({READ}) | diff /root/found -")


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
    name = name_of(machine)
    machine.do(f"systemd-run --unit=cut autotune run {name} --workload quick --trials 8 --time 2h")
    machine.until("ls -d /.autotune-*")
    machine.do("sync")
    machine.cut()
    machine.boot()
    has_cleaned_up(machine)
    assert machine.do(READ).split() == KEPT


def test_remove(machine: Machine, way: Way) -> None:
    """With root on the array: removed, it leaves no changed setting"""
    machine.do(way.remove)
    machine.do(f"({READ}) | diff /root/found -")
    machine.reboot()
    machine.do(f"({READ}) | diff /root/found -")
