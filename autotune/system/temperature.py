"""How warm disks are, as the kernel's driver `drivetemp` reads it. Changes nothing.

Files: kernel Documentation/hwmon/drivetemp.rst, Documentation/hwmon/sysfs-interface.rst.
"""

from collections.abc import Collection
from pathlib import Path

from autotune.system import sysfs

DRIVER = "drivetemp"


def temperatures(disks: Collection[str], root: Path = Path("/")) -> dict[str, float]:
    """The degrees Celsius of each disk ("sda") that says so: of none without the driver, or if the
    disk has no sensor."""
    found = {}
    for sensor in sorted((root / "sys/class/hwmon").glob("*")):
        if sysfs.read_or(sensor / "name", "") != DRIVER:
            continue
        text = sysfs.read_or(sensor / "temp1_input", "")
        for disk in (sensor / "device/block").glob("*"):
            # A disk that sleeps, or was just pulled out, says nothing.
            if disk.name in disks and text.lstrip("-").isdigit():
                found[disk.name] = int(text) / 1000
    return found
