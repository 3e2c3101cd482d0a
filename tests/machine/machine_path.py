"""From a bare Debian to an array that is tuned, kept and guarded, and back. In this order."""

import json
from statistics import median

from arrays import (
    KEPT,
    KEPT_MORE,
    MAKE,
    MEMBERS,
    READ,
    READ_MORE,
    guard_of,
    has_cleaned_up,
    name_of,
    start_run,
)
from latency import beside
from machine import COMMAND_S, Machine
from ways import Way

CALL = """
import sys
from autotune.service.notify import run_command
sys.exit(run_command(("/usr/local/sbin/hook",), "failed", "/dev/md0", "u", "text"))
"""
LEFT = (
    "find / -xdev \\( -path /proc -o -path /sys -o -path '/var/log/*' -o -path '/var/cache/*' "
    "-o -path '/var/lib/apt/*' -o -path '/tmp/*' -o -path '/root/*' "
    "-o -path '/var/lib/systemd/timers/*' \\) -prune -o -iname '*autotune*' -print"
)


def state_of(machine: Machine, unit: str) -> str:
    return machine.run(f"systemctl is-enabled {unit}").out.strip()


def test_install(machine: Machine, way: Way) -> None:
    """It installs, the package from apt or the wheel with pip, and no unit is enabled"""
    machine.do(way.install, timeout_s=2 * COMMAND_S)
    assert machine.do("autotune --version").startswith("autotune ")
    for unit in ("autotune-restore.service", "autotune-restore.timer", "autotune-retune.timer"):
        assert state_of(machine, unit) in ("disabled", "not-found", "")
    if way.is_package:
        assert "[defaults]" in machine.do("cat /etc/autotune/config.toml")
    assert json.loads(machine.do("autotune config check --json")) is not None


def test_doctor(machine: Machine) -> None:
    """`doctor` on a new array"""
    machine.do(f"{MAKE} && ({READ}; {READ_MORE}) > /root/found")
    machine.do("autotune doctor /dev/md0")


def test_run(machine: Machine) -> None:
    """A short run on a mounted array"""
    machine.do(
        "autotune run /dev/md0 --workload /root/workload.toml --trials 2 --time 30min --json",
        timeout_s=2 * COMMAND_S,
    )
    machine.do(f"({READ}; {READ_MORE}) | diff /root/found -")
    assert machine.do("ls -A /data").split() == ["lost+found"]


def test_apply_and_reboot(machine: Machine) -> None:
    """`apply --persist`, and a reboot with the array assembled in the initramfs"""
    machine.do("autotune apply /root/profile.json /dev/md0 --persist")
    assert machine.do(f"{READ}; {READ_MORE}").split() == [*KEPT, *KEPT_MORE]
    machine.do("update-initramfs -u")
    machine.reboot()
    assert machine.do(f"{READ}; {READ_MORE}").split() == [*KEPT, *KEPT_MORE]
    machine.do("findmnt /data && autotune status")


def test_service(machine: Machine) -> None:
    """`service install`: the units are in force, with the guard of the configuration"""
    machine.do(
        "mkdir -p /etc/autotune && printf '%s\\n' '[defaults]' "
        "'workload = \"/root/workload.toml\"' 'guard_p99 = \"400ms\"' 'adopt = false' "
        "> /etc/autotune/config.toml"
    )
    machine.do("autotune config check && autotune service install")
    for timer in ("autotune-retune.timer", "autotune-restore.timer"):
        assert state_of(machine, timer) == "enabled"
    machine.until(f"systemctl is-active {guard_of(machine)}")
    machine.do("autotune service status")


def test_guard(machine: Machine) -> None:
    """A guard holds a check, its guardian in a scope of its own; its p99 is near fio's own"""
    name = name_of(machine)
    guard, md = guard_of(machine), f"/sys/block/{name}/md"
    drop_in = f"/run/systemd/system/{guard}.service.d"
    machine.do(
        f"mkdir -p {drop_in} && printf '%s\\n' '[Service]' ExecStart= "
        '"ExecStart=$(command -v autotune) guard /dev/disk/by-id/md-uuid-%i --wait --json" '
        f"> {drop_in}/json.conf && systemctl daemon-reload && systemctl restart {guard}"
    )
    machine.do(
        f"systemd-run --unit=load fio --name=load --filename=/dev/{name} --readonly --rw=randread "
        "--bs=4k --direct=1 --rate_iops=40 --time_based --runtime=1h "
        "--write_lat_log=/root/load --log_unix_epoch=1"
    )
    machine.do(f"echo 4000 > {md}/sync_speed_max; echo check > {md}/sync_action")
    scopes = "systemctl list-units --plain --no-legend 'autotune-guardian-*' | grep scope"
    machine.until(scopes)
    judged = f"""journalctl -o cat -u {guard} | grep -c '"samples": [0-9][0-9][0-9]'"""
    machine.until(f"test $({judged}) -ge 8")
    machine.do(f"echo idle > {md}/sync_action")
    machine.until(f"journalctl -o cat -u {guard} | grep summary")
    assert machine.do(f"cat {md}/sync_speed_max").split()[0] == "4000"
    machine.do("systemctl stop load")
    pairs = beside(
        machine.do(f"journalctl -o cat -u {guard}"), machine.do("cat /root/load_clat.1.log")
    )
    print([f"guard {ours / 1e6:.1f} ms, fio {own / 1e6:.1f} ms" for ours, own in pairs])
    assert 0.5 < median(ours / own for ours, own in pairs) < 1.5
    assert machine.run(scopes).code
    machine.do(
        f"echo 300000 > {md}/sync_speed_max; rm -r {drop_in}; systemctl daemon-reload; "
        f"systemctl restart {guard}"
    )


def test_replace(machine: Machine) -> None:
    """A failed member is replaced under guard, and its successor has the values"""
    name = name_of(machine)
    machine.do(f"mdadm /dev/{name} --fail /dev/vdc")
    machine.until(f"mdadm /dev/{name} --remove /dev/vdc")
    machine.do(f"mdadm --zero-superblock /dev/vdc && mdadm /dev/{name} --add /dev/vdf")
    machine.until(f"journalctl -u {guard_of(machine)} | grep 'Guarded a recovery'")
    assert "[UUUU]" in machine.do("cat /proc/mdstat")
    machine.until(f"test $({MEMBERS} | grep -c '^512$') = 4")
    assert machine.do(READ).split() == KEPT


def test_retune(machine: Machine) -> None:
    """The timer starts the re-tuning unit, in its sandbox"""
    service, timer = "autotune-retune.service", "autotune-retune.timer"
    soon = f"/run/systemd/system/{timer}.d"
    machine.do(
        f"mkdir {soon} && printf '%s\\n' '[Timer]' OnCalendar= OnActiveSec=1s RandomizedDelaySec=0 "
        f"> {soon}/soon.conf && systemctl daemon-reload && systemctl restart {timer}"
    )
    ended = f'test -n "$(systemctl show -P ExecMainExitTimestamp {service})"'
    machine.until(ended, timeout_s=2 * COMMAND_S)
    assert machine.do(f"systemctl show -P Result {service}").strip() == "success"
    machine.do(f"rm -r {soon} && systemctl daemon-reload && systemctl restart {timer}")
    machine.do("autotune retune --log")


def test_notify(machine: Machine, way: Way) -> None:
    """The command for events runs from within that sandbox, in a unit of its own"""
    machine.do(
        "printf '#!/bin/sh\\ncat > /root/event.json\\ncat /proc/self/cgroup > /root/cgroup\\n' "
        "> /usr/local/sbin/hook && chmod 755 /usr/local/sbin/hook"
    )
    machine.do(f"cat > /root/call.py <<'END'\n{CALL}\nEND")
    machine.do(
        "mkdir -p /run/systemd/system/autotune-retune.service.d && printf '%s\\n' '[Service]' "
        f"ExecStart= 'ExecStart={way.python} -P /root/call.py' "
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


def test_upgrade(machine: Machine, way: Way) -> None:
    """A later version, installed over it, keeps the profile, the runs and the guard"""
    guard = guard_of(machine)
    before = machine.do(f"autotune history --json; systemctl show -P MainPID {guard}")
    machine.do(way.upgrade, timeout_s=2 * COMMAND_S)
    after = machine.do(f"autotune history --json; systemctl show -P MainPID {guard}")
    if way.is_package:
        assert machine.do("dpkg-query -W autotune-md").strip().endswith("+next")
    assert before.splitlines()[:-1] == after.splitlines()[:-1]
    assert before.splitlines()[-1] != after.splitlines()[-1] != "0"
    assert machine.do(READ).split() == KEPT
    for timer in ("autotune-retune.timer", "autotune-restore.timer"):
        assert state_of(machine, timer) == "enabled"
    machine.do("autotune status")


def test_power_cut(machine: Machine) -> None:
    """A power cut in mid-run: after the boot nothing is half"""
    start_run(machine, name_of(machine), "/data", "quick")
    machine.do("sync")
    machine.cut()
    machine.boot()
    has_cleaned_up(machine)
    assert machine.do(READ).split() == KEPT


def test_remove(machine: Machine, way: Way) -> None:
    """Removed, it leaves no file and no changed setting"""
    done = machine.run(way.remove)
    assert done.code == 0, done.text
    machine.do(f"({READ}; {READ_MORE}) | diff /root/found -")
    assert machine.do(LEFT).split() == []
    machine.reboot()
    machine.do(f"({READ}; {READ_MORE}) | diff /root/found -")
    assert machine.run("systemctl list-unit-files | grep autotune").code
