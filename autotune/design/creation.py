"""How mdadm makes an array: without `--run`, so that it looks at the disks itself, as the last one
before its write, and what it asks is answered.

mdadm 4.2 warns of ext2 to ext4, reiserfs, members of arrays and partition tables, and then asks
(Create.c). It asks too where it takes much less than a disk has, as for nearly all small arrays.
Since it is running by then, the disks are looked at once more before the answer.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from tempfile import TemporaryFile

from autotune.design.blank_disks import Disk, look_at_all_again
from autotune.design.shape import Shape
from autotune.errors import InfeasibleError, RefusalError
from autotune.system.programs import find
from autotune.untrusted import plain

CREATE_S = 60.0
LOOK_S = 0.01
MOST_BYTES = 1 << 16
QUESTION = "Continue creating array"
WARNINGS = ("appears to", "contain", "partition table", "file system", "filesystem", "signature")
"""Words of mdadm about what is on a disk."""


def create(
    device: str, shape: Shape, disks: Sequence[Disk], words: Iterable[str] = (), *inherited: int
) -> None:
    """Look at the disks, and make an array of them. `inherited` are descriptors that mdadm keeps
    open meanwhile.

    Raise RefusalError if a disk is not blank any more, or mdadm cannot be asked, InfeasibleError if
    it does not make the array.
    """
    look_at_all_again(disks)
    devices = [disk.device for disk in disks]
    program = find("mdadm") or "mdadm"
    command = (program, "--create", device, *shape.mdadm_words(len(disks)), *words, *devices)
    # Its words go into a file: with a pipe it would die with whoever reads it, half way.
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=inherited,
                # Ctrl-C is for autotune to handle.
                start_new_session=True,
            )
        except OSError as error:
            raise RefusalError(f"mdadm cannot be started: {error.strerror}.") from None
        with process:
            refusal = _answer(process, output.fileno(), lambda: look_at_all_again(disks))
        lines = [line for line in _said(output.fileno()).splitlines() if line.strip()]
    if refusal is not None:
        raise refusal
    if process.returncode:
        why = plain(lines[-1].removeprefix("mdadm: ").rstrip(".")) if lines else "it says nothing"
        raise InfeasibleError(f"mdadm does not make {shape}: {why}.")


def _said(output: int) -> str:
    # Not by reading on, which would move the place where mdadm writes.
    return os.pread(output, MOST_BYTES, 0).decode("utf-8", "replace")


def _answer(
    process: subprocess.Popen[bytes], output: int, look: Callable[[], None]
) -> RefusalError | None:
    """Answer mdadm's question, if it has one, until it has ended. What was refused, if anything."""
    assert process.stdin is not None
    deadline = time.monotonic() + CREATE_S
    asked, refusal = "", None
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            return RefusalError(
                f"mdadm did not make the array within {CREATE_S:.0f} s; look at the kernel log."
            )
        said = _said(output)
        if not asked and said.rstrip().endswith("?"):
            asked = said
            refusal = _objection(asked, look)
            # It may have ended meanwhile.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"n\n" if refusal else b"y\n")
                process.stdin.flush()
        time.sleep(LOOK_S)
    return refusal


def _objection(asked: str, look: Callable[[], None]) -> RefusalError | None:
    """Why mdadm is not to go on, if it is not."""
    lines = [line.removeprefix("mdadm: ").strip() for line in asked.splitlines()]
    if QUESTION not in lines[-1]:
        return RefusalError(f"mdadm asks what autotune cannot answer: {plain(lines[-1])}")
    found = next((line for line in lines if any(word in line for word in WARNINGS)), None)
    if found is not None:
        return RefusalError(f"Nothing was made: {plain(found.rstrip(':.'))}.")
    try:
        look()
    except RefusalError as error:
        return error
    return None
