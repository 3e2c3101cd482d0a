"""The array in a machine: made, read, and what the tests set on it."""

from machine import Machine

STATE = "/var/lib/autotune"
MAKE = (
    "mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=4 --chunk=64 "
    "/dev/vdb /dev/vdc /dev/vdd /dev/vde && mkfs.ext4 -q /dev/md0 && mkdir -p /data && "
    "mount /dev/md0 /data && mdadm --detail --scan >> /etc/mdadm/mdadm.conf && "
    # Emulated, an array may need longer to be seen than systemd waits by itself.
    "echo 'UUID='$(blkid -s UUID -o value /dev/md0)' /data ext4 "
    "nofail,x-systemd.device-timeout=30min 0 2' >> /etc/fstab && "
    "update-initramfs -u"
)
MEMBERS = "cat /sys/block/md*/slaves/*/queue/max_sectors_kb"
READ = (
    "cat /sys/block/md*/md/stripe_cache_size /sys/block/md*/queue/read_ahead_kb "
    f"/sys/block/md*/md/sync_speed_max; {MEMBERS}"
)
KEPT = ["1024", "2048", "300000", "(local)", *["512"] * 4]
"""What `profile.json` sets, as it reads."""

READ_MORE = "cat /sys/block/md*/md/safe_mode_delay /sys/block/md*/slaves/*/queue/rq_affinity"
KEPT_MORE = ["5.000", *["2"] * 4]
"""The lab's kernel is for one processor, so it has no `rq_affinity`."""


def name_of(machine: Machine) -> str:
    """The array's name: it may be another one after a boot."""
    return machine.do("basename $(ls -d /sys/block/md*)").strip()


def guard_of(machine: Machine) -> str:
    """The unit of its guard, without the ending."""
    asked = f"mdadm --detail --export /dev/{name_of(machine)} | sed -n s/^MD_UUID=//p"
    return f"autotune-guard@{machine.do(asked).strip()}"


def start_run(machine: Machine, name: str, folder: str, workload: str) -> None:
    """Start a run in a unit, and wait until its scratch file is in a folder."""
    words = f"{name} --workload {workload} --trials 8 --time 2h"
    machine.do(f"systemd-run --unit=cut autotune run {words}")
    scratch = f"ls -d {folder}/.autotune-*"
    machine.until(f"{scratch} || ! systemctl --quiet is-active cut")
    machine.do(f"{scratch} || (journalctl -u cut -o cat; false)")


def has_cleaned_up(machine: Machine) -> None:
    """After a power cut: the unit has done its work, and nothing is left of what was cut."""
    machine.until("systemctl show -P ActiveState autotune-restore | grep -v activating")
    # The array was not marked clean. What may not change meanwhile waits for the end of that.
    machine.until("test $(cat /sys/block/md*/md/sync_action) = idle")
    machine.until(f'test -z "$(ls {STATE}/journal)"')
    machine.do("udevadm settle")
    assert machine.do("systemctl show -P Result autotune-restore.service").strip() == "success"
    assert machine.do("find / -maxdepth 2 -path /proc -prune -o -name '.autotune-*' -print") == ""
