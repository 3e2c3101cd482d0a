"""What the tests of advice share: machines, and looks at them."""

from pathlib import Path

from fake_sysfs import FakeMachine

from autotune.advice.advise import advise
from autotune.advice.finding import Advice, Finding
from autotune.system.array import find_array

MD = "sys/block/md0/md"


def look(machine: FakeMachine, silence: tuple[str, ...] = ()) -> Advice:
    array = find_array("md0", machine.root)
    return advise(array, machine.root / "state", silence, measure=False)


def found(machine: FakeMachine) -> list[Finding]:
    return [*look(machine).findings]


def only(machine: FakeMachine, name: str) -> Finding:
    """The one finding there is, which has this name."""
    findings = found(machine)
    assert [finding.name for finding in findings] == [name], findings
    return findings[0]


def array(root: Path, level: str, disks: int, rotational: bool = True) -> FakeMachine:
    """A machine with md0 on sda, sdb and so on."""
    machine = FakeMachine(root)
    names = [f"sd{letter}" for letter in "abcdef"[:disks]]
    for name in names:
        machine.disk(name, rotational)
    machine.array("md0", level, names)
    return machine


def nvmes(root: Path, level: str) -> FakeMachine:
    machine = FakeMachine(root)
    names = [f"nvme{number}n1" for number in range(3)]
    for name in names:
        machine.disk(name, rotational=False, scheduler="none")
        for file, text in (("speed", "16.0 GT/s PCIe"), ("width", "4")):
            machine.put(f"sys/block/{name}/device/device/current_link_{file}", text)
        machine.put(f"sys/block/{name}/device/model", "PM9A3")
    machine.array("md0", level, names)
    return machine


def choose(machine: FakeMachine, disk: str, scheduler: str) -> None:
    names = " ".join(
        f"[{name}]" if name == scheduler else name for name in ("mq-deadline", "bfq", "none")
    )
    machine.put(f"sys/block/{disk}/queue/scheduler", names)
