"""From a bare Debian to an array that is tuned, kept and guarded, and back. In this order."""

import json

import pytest
from machine import Machine

SETTINGS = {"stripe_cache_size": 1024, "read_ahead_kb": 2048, "sync_speed_max": 300000}
READ = "cat /sys/block/md*/md/stripe_cache_size /sys/block/md*/queue/read_ahead_kb"
KEPT = ["1024", "2048"]
PROFILE = {
    "schema_version": 1,
    "name": "machine",
    "created": "2026-01-01T00:00:00Z",
    "proven_on": {
        "level": "raid5", "members": 4, "chunk_kib": 64, "media": "ssd", "kernel": "6.1",
        "uuid": "0" * 32,
    },
    "workload": "quick",
    "knobs": SETTINGS,
    "before": {},
    "ram_bytes": 0,
    "ram_budget_bytes": 64 * 1024**2,
    "evidence": {"confirmed": True, "gain": 1.1, "low": 1.0, "high": 1.2, "trials": 3,
                 "seconds": 60},
}  # fmt: skip
CALL = """
import sys
from autotune.service.notify import run_command
sys.exit(run_command(("/usr/local/sbin/hook",), "failed", "/dev/md0", "u", "text"))
"""
STATE = "/var/lib/autotune"
LEFT = (
    "find / -xdev \\( -path /proc -o -path /sys -o -path '/var/log/*' -o -path '/var/cache/*' "
    "-o -path '/var/lib/apt/*' -o -path '/tmp/*' -o -path /root/autotune.deb "
    "-o -path '/var/lib/systemd/timers/*' \\) -prune -o -iname '*autotune*' -print"
)


@pytest.fixture(autouse=True)
def stop_at_the_first(request: pytest.FixtureRequest) -> None:
    """Each test goes on from where the one before has brought the machine."""
    if request.session.testsfailed:
        pytest.skip("an earlier part failed")


def device(machine: Machine) -> str:
    return "/dev/" + machine.do("basename $(ls -d /sys/block/md*)").strip()


def state_of(machine: Machine, unit: str) -> str:
    return machine.run(f"systemctl is-enabled {unit}").out.strip()


def test_install(machine: Machine) -> None:
    """The package installs from apt, and no unit is enabled"""
    machine.do(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y -q "
        "--no-install-recommends /root/autotune.deb"
    )
    assert machine.do("autotune --version").startswith("autotune ")
    for unit in ("autotune-restore.service", "autotune-retune.timer"):
        assert state_of(machine, unit) == "disabled"
    assert "[defaults]" in machine.do("cat /etc/autotune/config.toml")
    assert json.loads(machine.do("autotune config check --json")) is not None


def test_doctor(machine: Machine) -> None:
    """`doctor` on a new array"""
    machine.do(
        "mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=4 --chunk=64 "
        "/dev/vdb /dev/vdc /dev/vdd /dev/vde && mkfs.ext4 -q /dev/md0 && mkdir -p /data && "
        "mount /dev/md0 /data && mdadm --detail --scan >> /etc/mdadm/mdadm.conf && "
        "echo 'UUID='$(blkid -s UUID -o value /dev/md0)' /data ext4 nofail 0 2' >> /etc/fstab && "
        "update-initramfs -u"
    )
    machine.do("autotune doctor /dev/md0")


def test_run(machine: Machine) -> None:
    """A short run on a mounted array"""
    before = machine.do(READ)
    done = machine.run(
        "autotune run /dev/md0 --workload quick --trials 2 --time 30min --json", timeout_s=3600
    )
    assert done.code == 0, done.text
    assert machine.do(READ) == before
    assert machine.do("ls -A /data").split() == ["lost+found"]


def test_apply_and_reboot(machine: Machine) -> None:
    """`apply --persist`, and a reboot with the array assembled in the initramfs"""
    machine.do(f"cat > /root/profile.json <<'END'\n{json.dumps(PROFILE)}\nEND")
    machine.do("autotune apply /root/profile.json /dev/md0 --persist")
    assert machine.do(READ).split() == KEPT
    machine.do("update-initramfs -u")
    machine.reboot()
    assert machine.do(READ).split() == KEPT
    machine.do("findmnt /data")


def test_service(machine: Machine) -> None:
    """`service install`: the units are in force, with the guard of the configuration"""
    machine.do(
        'printf \'[defaults]\\nguard_p99 = "200ms"\\nwindow = "00:00-24:00"\\n\' '
        "> /etc/autotune/config.toml"
    )
    machine.do("autotune config check && autotune service install")
    assert state_of(machine, "autotune-retune.timer") == "enabled"
    name = device(machine).removeprefix("/dev/")
    machine.until(f"systemctl is-active autotune-guard@{name}", 120)
    machine.do("autotune service status")


def test_guard(machine: Machine) -> None:
    """A guard under systemd holds a check, its guardian in a scope of its own"""
    name = device(machine).removeprefix("/dev/")
    machine.do(
        f"systemd-run --unit=load fio --name=load --filename={device(machine)} --readonly "
        "--rw=randread --bs=4k --direct=1 --rate_iops=40 --time_based --runtime=1800"
    )
    machine.do(f"echo check > /sys/block/{name}/md/sync_action")
    machine.until(
        "systemctl list-units --plain --no-legend 'autotune-guardian-*' | grep scope", 300
    )
    machine.until(f"grep -q local /sys/block/{name}/md/sync_speed_max", 300)
    machine.do(f"sleep 20; echo idle > /sys/block/{name}/md/sync_action; systemctl stop load")
    log = machine.until(f"journalctl -u autotune-guard@{name} | grep 'Guarded a check'", 300)
    assert "the settings are as they were found" in log
    rss = machine.do(f"grep VmRSS /proc/$(systemctl show -P MainPID autotune-guard@{name})/status")
    assert int(rss.split()[1]) < 45 * 1024


def test_retune(machine: Machine) -> None:
    """The re-tuning unit in its sandbox"""
    machine.do("systemctl start autotune-retune.service", timeout_s=3600)
    assert machine.do("systemctl show -P Result autotune-retune.service").strip() == "success"
    machine.do("autotune retune --log")


def test_notify(machine: Machine) -> None:
    """The command for events runs from within that sandbox, in a unit of its own"""
    machine.do(
        "printf '#!/bin/sh\\ncat > /root/event.json\\ncat /proc/self/cgroup > /root/cgroup\\n' "
        "> /usr/local/sbin/hook && chmod 755 /usr/local/sbin/hook"
    )
    machine.do(f"cat > /root/call.py <<'END'\n{CALL}\nEND")
    machine.do(
        "mkdir -p /run/systemd/system/autotune-retune.service.d && printf '%s\\n' '[Service]' "
        "ExecStart= 'ExecStart=/usr/lib/autotune/bin/python3 -P /root/call.py' "
        "> /run/systemd/system/autotune-retune.service.d/hook.conf && systemctl daemon-reload"
    )
    done = machine.run("systemctl start autotune-retune.service; journalctl -n 20 --no-pager")
    assert machine.run("cat /root/event.json").code == 0, done.text
    assert json.loads(machine.do("cat /root/event.json"))["event"] == "failed"
    assert "autotune-retune" not in machine.do("cat /root/cgroup")
    machine.do(
        "rm -r /run/systemd/system/autotune-retune.service.d /usr/local/sbin/hook; "
        "rm /root/event.json /root/cgroup /root/call.py; systemctl daemon-reload"
    )


def test_power_cut(machine: Machine) -> None:
    """A power cut in mid-run: after the boot nothing is half"""
    name = device(machine)
    machine.do(f"systemd-run --unit=cut autotune run {name} --workload quick --trials 8 --time 2h")
    machine.until("ls -d /data/.autotune-*", 900)
    machine.do("sync")
    machine.cut()
    machine.boot()
    machine.until("systemctl show -P ActiveState autotune-restore | grep -v activating", 300)
    assert machine.do("systemctl show -P Result autotune-restore.service").strip() == "success"
    assert machine.run("ls /data/.autotune-*").code
    assert machine.do(f"ls {STATE}/journal").split() == []
    machine.until(f"test \"$({READ} | tr '\\n' ' ')\" = '{' '.join(KEPT)} '", 60)


def test_remove(machine: Machine) -> None:
    """Purged, it leaves no file and no changed setting"""
    done = machine.run("apt-get purge -y -q autotune-md")
    assert done.code == 0, done.text
    assert machine.do(READ).split() != KEPT
    assert machine.do(LEFT).split() == []
    machine.reboot()
    assert machine.do(READ).split()[0] == "256"
    assert machine.run("systemctl list-unit-files | grep autotune").code
