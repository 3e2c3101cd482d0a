"""What the host tells the guest to do, as JSON in the lab's folder."""

from typing import Literal, TypedDict

SHARED = "/run/lab"
"""Where the guest sees the lab's shared folder; its changes reach the host at once."""


class ArrayPlan(TypedDict):
    """An array to create. `members` are indices of disks."""

    name: str
    level: str
    members: list[int]
    chunk_kib: int
    bitmap: bool


class FilesystemPlan(TypedDict):
    """A filesystem to make and mount."""

    array: str
    kind: Literal["ext4", "xfs"]
    mount: str


class GuestPlan(TypedDict):
    """Everything the guest needs to know."""

    shared: str
    """The host's path of the shared folder."""
    modules: str
    """The folder with a folder of modules for each kernel."""
    out: str | None
    """A host folder to mount, writable, at the same path."""
    rotational: list[bool]
    """For each disk."""
    arrays: list[ArrayPlan]
    filesystem: FilesystemPlan | None
    udev: bool
    command: list[str]
    directory: str
    environment: dict[str, str]
    terminal: bool
    """Whether the command gets a terminal, or pipes."""
