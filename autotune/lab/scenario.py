"""What a lab is made of: a TOML file, which may come from a stranger.

Every name is held to a pattern and every number to a range, so that nothing in a scenario can
become a shell word, a path outside the lab, or more than the machine can give.
"""

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from autotune.errors import UsageError, closest
from autotune.untrusted import MOST_TYPED_BYTES, in_plain, plain, read_file, read_toml

MAX_DISKS = 16
MAX_TOTAL_MIB = 32 * 1024

_MIB = 1024 * 1024


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _DiskGroup(_Table):
    """Some disks that are alike."""

    count: Annotated[int, Field(ge=1, le=MAX_DISKS)]
    size_mib: Annotated[int, Field(ge=64, le=16 * 1024)] = 1024


class HddGroup(_DiskGroup):
    """Rotating disks. Unless said otherwise: 7200 rpm, at a rate that one CPU can simulate."""

    kind: Literal["hdd"]
    transfer_mb_s: Annotated[float, Field(ge=1, le=1000)] = 100
    inner_percent: Annotated[float, Field(ge=10, le=100)] = 100
    """The rate at the end of the disk, of that at its beginning: about 50 on real ones."""
    seek_ms: Annotated[float, Field(ge=0, le=100)] = 8.5
    rpm: Annotated[float, Field(ge=1000, le=60_000)] = 7200
    queue: Annotated[int, Field(ge=1, le=64)] = 32
    look_ahead_kib: Annotated[int, Field(ge=0, le=65_536)] = 2048
    write_cache_mib: Annotated[float, Field(ge=0, le=256)] = 16

    def spec(self) -> dict[str, int]:
        """Return the fields of the model's `struct disk_spec`: bytes, bytes/s and nanoseconds."""
        return {
            "rotating": 1,
            "size": self.size_mib * _MIB,
            "rate": round(self.transfer_mb_s * 1e6),
            "inner_rate": round(self.transfer_mb_s * self.inner_percent * 1e4),
            "queue": self.queue,
            "seek_ns": round(self.seek_ms * 1e6),
            "rotation_ns": round(60e9 / self.rpm),
            "lookahead": self.look_ahead_kib * 1024,
            "cache": round(self.write_cache_mib * _MIB),
        }


class SsdGroup(_DiskGroup):
    """Flash disks behind a SATA-like link, at a rate that one CPU can simulate."""

    kind: Literal["ssd"]
    bandwidth_mb_s: Annotated[float, Field(ge=1, le=10_000)] = 250
    channels: Annotated[int, Field(ge=1, le=64)] = 8
    read_us: Annotated[float, Field(ge=0, le=100_000)] = 90
    write_us: Annotated[float, Field(ge=0, le=100_000)] = 40
    burst_mib: Annotated[float, Field(ge=0, le=65_536)] = 512
    sustained_mb_s: Annotated[float, Field(ge=1, le=10_000)] = 120

    def spec(self) -> dict[str, int]:
        """Return the fields of the model's `struct disk_spec`: bytes, bytes/s and nanoseconds."""
        return {
            "rotating": 0,
            "size": self.size_mib * _MIB,
            "rate": round(self.bandwidth_mb_s * 1e6),
            "channels": self.channels,
            "read_ns": round(self.read_us * 1e3),
            "write_ns": round(self.write_us * 1e3),
            "burst": round(self.burst_mib * _MIB),
            "sustained": round(self.sustained_mb_s * 1e6),
        }


class NvmeGroup(SsdGroup):
    """Faster flash. The kernel sees vdX, not nvmeX, so media found by name will say ssd."""

    kind: Literal["nvme"]  # type: ignore[assignment]
    bandwidth_mb_s: Annotated[float, Field(ge=1, le=10_000)] = 500
    channels: Annotated[int, Field(ge=1, le=64)] = 16
    read_us: Annotated[float, Field(ge=0, le=100_000)] = 60
    write_us: Annotated[float, Field(ge=0, le=100_000)] = 20
    burst_mib: Annotated[float, Field(ge=0, le=65_536)] = 1024
    sustained_mb_s: Annotated[float, Field(ge=1, le=10_000)] = 300


Disk = HddGroup | SsdGroup | NvmeGroup


class ScenarioArray(_Table):
    """An md array on the next `members` disks that no earlier array has taken."""

    name: Annotated[str, Field(pattern=r"^md[0-9]{1,2}$")]
    level: Literal["raid0", "raid1", "raid4", "raid5", "raid6", "raid10"]
    members: Annotated[int, Field(ge=2, le=MAX_DISKS)]
    chunk_kib: Annotated[int, Field(ge=4, le=4096)] = 512
    bitmap: bool = False


class Filesystem(_Table):
    """A filesystem that fills an array, mounted."""

    array: str
    kind: Literal["ext4", "xfs"]
    mount: Annotated[str, Field(pattern=r"^/mnt/[a-z0-9][a-z0-9_-]{0,30}$")]


class Scenario(_Table):
    """A machine to boot."""

    summary: Annotated[str, Field(max_length=100, pattern=r"^[\x20-\x7e]*$")] = ""
    memory_mib: Annotated[int, Field(ge=256, le=4096)] = 768
    udev: bool = False
    disks: Annotated[
        list[Annotated[Disk, Field(discriminator="kind")]],
        Field(min_length=1, max_length=MAX_DISKS),
    ]
    arrays: Annotated[list[ScenarioArray], Field(max_length=MAX_DISKS)] = []
    filesystem: Filesystem | None = None

    @property
    def each_disk(self) -> list[Disk]:
        """Every disk by itself, in order: vda, vdb, …"""
        return [group for group in self.disks for _ in range(group.count)]

    @property
    def memory_bytes(self) -> int:
        """What the machine and its disks take of the host's memory at most."""
        return (self.memory_mib + sum(disk.size_mib for disk in self.each_disk)) * _MIB

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        disks = self.each_disk
        if len(disks) > MAX_DISKS:
            raise ValueError(f"a lab has at most {MAX_DISKS} disks")
        if sum(disk.size_mib for disk in disks) > MAX_TOTAL_MIB:
            raise ValueError(f"all disks together have at most {MAX_TOTAL_MIB} MiB")
        if sum(array.members for array in self.arrays) > len(disks):
            raise ValueError("the arrays have more members than there are disks")
        names = [array.name for array in self.arrays]
        if len(set(names)) < len(names):
            raise ValueError("two arrays have the same name")
        if self.filesystem and self.filesystem.array not in names:
            raise ValueError("the filesystem lies on an array that is not there")
        return self


def shipped() -> dict[str, str]:
    """Return the summary of every scenario that comes with autotune, by name."""
    folder = resources.files("autotune.lab.scenarios")
    names = [entry.name for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return {name: load(name).summary for name in sorted(n.removesuffix(".toml") for n in names)}


def load(name: str) -> Scenario:
    """Return a shipped scenario by name, or the one in a file whose path ends in .toml.

    Raise UsageError if there is none, or if it is not a scenario.
    """
    try:
        if name.endswith(".toml"):
            data = read_file(Path(name), MOST_TYPED_BYTES)
        elif name.replace("-", "").isalnum():
            data = resources.files("autotune.lab.scenarios").joinpath(f"{name}.toml").read_bytes()
        else:
            raise FileNotFoundError
    except OSError as error:
        if name.endswith(".toml"):
            raise UsageError(
                f"The scenario {plain(name)} cannot be read: {error.strerror}; `autotune lab "
                "--list` shows those that come with autotune."
            ) from error
        raise UsageError(
            f"There is no scenario {name!r}; `autotune lab --list` shows those that come with "
            "autotune, and a path to your own must end in .toml."
        ) from error
    except ValueError as error:
        raise UsageError(f"The scenario {name} {error}.") from None
    return parse_scenario(data.decode("utf-8", "replace"), name)


def parse_scenario(text: str, source: str) -> Scenario:
    """A scenario from TOML text. Raise UsageError naming `source` and the first fault."""
    try:
        return Scenario.model_validate(read_toml(text))
    except ValidationError as error:
        fault = _first_fault(error)
    except ValueError as error:
        fault = plain(str(error))
    raise UsageError(f"The scenario {source} cannot be used; correct this: {fault}.")


_PATTERNS = {
    "name": "it has to be md and a number of one or two digits, such as md0",
    "mount": "it has to be a folder in /mnt, such as /mnt/data",
    "summary": "it may have letters, digits and signs of ASCII alone",
}
_DISKS: dict[str, type[_Table]] = {"hdd": HddGroup, "ssd": SsdGroup, "nvme": NvmeGroup}
_TABLES: dict[str, type[_Table]] = {"arrays": ScenarioArray, "filesystem": Filesystem}


def _first_fault(error: ValidationError) -> str:
    """The place and the kind of the first thing that is wrong, with what could stand there."""
    fault = error.errors(include_url=False, include_input=False)[0]
    table: type[_Table] = Scenario
    words: list[str] = []
    for part in fault["loc"]:
        if part in _DISKS and words and words[0].startswith("disks "):
            # Pydantic names the kind of disk, which is no place in the file.
            table = _DISKS[str(part)]
        elif isinstance(part, int):
            words[-1] += f" {part + 1}"
        else:
            table = _TABLES.get(part, table)
            words.append(part)
    key = words[-1] if words else ""
    message = in_plain(fault["type"], fault["msg"], fault.get("ctx", {}))
    if fault["type"] == "extra_forbidden":
        keys = list(table.model_fields)
        message = f"there is no such key{closest(key, keys)}; the keys are {', '.join(keys)}"
    elif fault["type"] == "string_pattern_mismatch":
        message = _PATTERNS.get(key, message)
    elif fault["type"] == "union_tag_not_found":
        message = f"kind is not there; it has to be {' or '.join(_DISKS)}"
    return plain(f"{', '.join(words)}: {message}" if words else message).rstrip(".")
