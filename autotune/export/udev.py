"""A udev rules file: the values come back at each assembly, without a program of ours.

What the rules rest on (seen on systemd 252 with mdadm 4.2):
- mdadm's 63-md-raid-arrays.rules gives an active array its MD_UUID; of one that is stopped or not
  yet complete it gives none, so it does not match.
- A property lives in udev's database for one event, unless the next one imports it. So what was
  set once is remembered as long as the array is active, or the disk a member, and forgotten with
  the first event after: whatever a person sets by hand in between stays.
- blkid gives every member the array's UUID as ID_FS_UUID, a replaced one as soon as it is in.
- What a disk had before, `disk-originals.sh` notes outside of that database: it is to outlast a
  partition, and a disk that leaves the array.
- mdadm closes a new member more than once, and udevd sees no close of a device while it handles
  the one before (systemd issue 26250): it may have looked before the superblock was there, and not
  look again. So a disk is looked at once more a second after it was closed. The second event has
  the array's UUID as its own, where udevd's have 0, and so is the last.
"""

import hashlib
import itertools
import secrets
from collections.abc import Iterable
from pathlib import Path

from autotune.errors import UsageError
from autotune.export.header import comment
from autotune.export.steps import BYPASS, CACHE, MAX, MIN, THREADS, Step, lasting, steps
from autotune.knobs.iosched import RESET_BY_SWITCH
from autotune.knobs.resets import DEPTHS, RAISING
from autotune.problem.profile import Profile
from autotune.system.blockdev import uuid_words
from autotune.system.disk_originals import NOTES
from autotune.system.noted_records import journal_note

RULES = Path("/etc/udev/rules.d")
"""Where an exported file has to be, under its own name."""
INITRAMFS = Path("/etc/initrd-release")
"""There in an initramfs of dracut's alone (initrd-release(5))."""
PERSISTED = Path("/etc/autotune/persisted")
"""The folder of the profiles that `--persist` keeps."""
NOTING = PERSISTED / "disk-originals.sh"
"""The script that notes what disks had. Exported rules undo nothing, and so note nothing."""
SCHEDULER, LENGTH = "queue/scheduler", "queue/nr_requests"

_LACKS = (
    "look at the free memory before it makes the stripe cache larger.",
    "set the stripe cache during a reshape, which never ends with one that is too small: it is set "
    "at the array's first event afterwards.",
    "undo anything: removed, it leaves the array's values until that is assembled anew, and the "
    "disks' until a restart.",
    "keep a value against another rule that sets it later.",
    "match any array but this one: each has its own UUID.",
)


def export_name(uuid: str) -> str:
    """The name of an exported file: late, after the rules that find the UUID and those of the
    distribution. `--persist` has another, so neither replaces or removes the other's."""
    return f"98-autotune-export-{uuid}.rules"


def render(profile: Profile, uuid: str) -> dict[str, str]:
    """The rules file for the array of this UUID (32 hex digits)."""
    return {export_name(uuid): exported(profile, *forms(uuid), uuid)}


def exported(profile: Profile, md_uuid: str, fs_uuid: str, uuid: str) -> str:
    """The text of an exported file, which does nothing where a profile is persisted: both would
    set theirs in turn at each event. Nor does it in an initramfs, where a copy would outlive the
    file: initramfs-tools puts that into another folder. The UUID in its three forms, each perhaps a
    variable."""
    gates = (
        f'TEST=="{PERSISTED}/{uuid}.json"',
        f'TEST!="{RULES}/{export_name(uuid)}"',
        f'TEST=="{INITRAMFS}"',
    )
    return rules(profile, md_uuid, fs_uuid, uuid, gates)


def persisted(profile: Profile, uuid: str) -> str:
    """The text of the rules of a persisted profile. initramfs-tools copies rules into the
    initramfs, where they would outlive their removal: there is no profile, so they do nothing.

    No two texts are the same. What udev remembers to have set by an earlier one counts no more, be
    it on disks that have left the array: an event that would let it forget them would also let
    mdadm start an array that its owner has stopped."""
    gates = (f'TEST!="{PERSISTED}/{uuid}.json"',)
    own = secrets.token_hex(4)
    return rules(profile, *forms(uuid), uuid, gates, notes=True, own=own)


def forms(uuid: str) -> tuple[str, str]:
    """A UUID as MD_UUID has it, and as blkid's ID_FS_UUID does. UsageError if it is none."""
    if len(uuid) != 32 or not set(uuid) <= set("0123456789abcdef"):
        raise UsageError("The array's UUID is not known; name the array with --array.")
    cuts = (0, 8, 12, 16, 20, 32)
    dashed = "-".join(uuid[a:b] for a, b in itertools.pairwise(cuts))
    return uuid_words(uuid), dashed


_INSTALL = (
    "Install: this file, under its name, in /etc/udev/rules.d. Then: udevadm control --reload && "
    "udevadm trigger --action=change --subsystem-match=block"
)


def rules(
    profile: Profile,
    md_uuid: str,
    fs_uuid: str,
    uuid: str,
    nothing_if: Iterable[str],
    notes: bool = False,
    own: str = "",
) -> str:
    """The rules' text. They do nothing while a run of autotune is under way, nor where one of the
    matches `nothing_if` holds. `notes`: whether it is noted what disks had. `own` tells what they
    set from what others with the same values set."""
    under_way = f'TEST=="{journal_note(uuid)}", {_TO_END}'
    wanted = steps(profile)
    on_array = [step for step in wanted if not step.on_disks]
    waiting = {name: [s for s in on_array if s.file in files] for name, files in _WAITING.items()}
    # What bounds itself by the cache that is there, if that is not set, waits for nothing.
    waiting = {
        name: found for name, found in waiting.items() if found[:1] and found[0].file != BYPASS
    }
    at_once = [step for step in on_array if not any(step in found for found in waiting.values())]
    on_disks = [step for step in wanted if step.on_disks]
    text = comment(profile, _INSTALL, lacks=_LACKS) + _HEAD
    text += "".join(f"{match}, {_TO_END}" for match in nothing_if)
    if on_array:
        text += (
            f'KERNEL=="md*", ENV{{DEVTYPE}}=="disk", ENV{{MD_UUID}}=="{md_uuid}", '
            'GOTO="autotune_array"\n'
        )
    if on_disks:
        text += (
            f'ENV{{ID_FS_TYPE}}=="linux_raid_member", ENV{{ID_FS_UUID}}=="{fs_uuid}", '
            'GOTO="autotune_member"\n'
        )
        text += _looked_at(fs_uuid)
    text += 'GOTO="autotune_end"\n'
    if on_array:
        text += '\nLABEL="autotune_array"\nATTR{md/array_state}=="clear|inactive", ' + _TO_END
        # Before a run is looked for: what is not imported is forgotten.
        text += 'IMPORT{db}="AUTOTUNE_ARRAY"\n' if at_once else ""
        text += "".join(f'IMPORT{{db}}="{name}"\n' for name in waiting)
        text += under_way
        text += "".join(_when_safe(name, found, own) for name, found in waiting.items())
        if at_once:
            key = _key(at_once, own)
            text += f'ENV{{AUTOTUNE_ARRAY}}=="{key}", ' + _TO_END
            text += "".join(_on_array(step, profile) for step in at_once)
            text += f'ENV{{AUTOTUNE_ARRAY}}="{key}"\n'
        text += _TO_END
    if on_disks:
        key = _key(on_disks, own)
        text += '\nLABEL="autotune_member"\n'
        text += 'IMPORT{db}="AUTOTUNE_MEMBER"\n'
        text += f'ENV{{AUTOTUNE_MEMBER}}=="{key}", ' + _TO_END
        text += under_way
        text += f"{_note('before', on_disks, uuid)}, {_TO_END}" if notes else ""
        text += "".join(_on_disk(step) for step in on_disks)
        text += f"{_note('after', on_disks, uuid)}, {_TO_END}" if notes else ""
        text += f'ENV{{AUTOTUNE_MEMBER}}="{key}"\n'
    return text + '\nLABEL="autotune_end"\n'


_WAITING = {"AUTOTUNE_CACHE": (CACHE, BYPASS), "AUTOTUNE_THREADS": (THREADS,)}
"""What is set at the first event at which it is safe for the first of its files, by the property
that remembers it. preread_bypass_threshold is bounded by the cache."""
_SAFE = {
    CACHE: 'ATTR{md/reshape_position}=="none", ',
    THREADS: (
        'ATTR{md/sync_action}=="idle", ATTR{md/resync_start}=="none", ATTR{md/degraded}=="0", '
        'ATTR{md/reshape_position}=="none", '
    ),
}
"""A reshape for which the cache gets too small never ends; and to change the number of threads
while a sync runs, or is about to, can hang md."""
_TO_END = 'GOTO="autotune_end"\n'
_HEAD = """
SUBSYSTEM!="block", GOTO="autotune_end"
ACTION!="add|change", GOTO="autotune_end"
"""


def _key(wanted: list[Step], own: str) -> str:
    """Tells one set of values from another: a changed profile is applied at the next event."""
    return hashlib.sha256(f"{wanted}{own}".encode()).hexdigest()[:12]


def _on_array(step: Step, profile: Profile) -> str:
    guard = f'TEST=="{step.file}", '
    alone = {s.file for s in lasting(profile)} & {MIN, MAX} == {step.file}
    if alone:
        # udev compares no numbers, but its patterns can stand for "at least" and "at most".
        other, pattern = (MAX, _at_least) if step.file == MIN else (MIN, _at_most)
        guard += f'ATTR{{{other}}}=="{pattern(int(step.text))}", '
    return f"{guard}{_store(step)}\n"


def _store(step: Step, below: str = "") -> str:
    """The assignment; `below` leads to the folder of the file. Where the kernel may raise the
    read-ahead with it (`resets.RAISING`), that stays as it was: udev does both in turn."""
    store = f'ATTR{{{below}{step.file}}}="{step.text}"'
    folder, _, name = step.file.rpartition("/")
    if name not in RAISING:
        return store
    ahead = f"{below}{folder}/read_ahead_kb"
    return f'PROGRAM=="/bin/cat /sys$devpath/{ahead}", {store}, ATTR{{{ahead}}}="$result"'


def _when_safe(name: str, wanted: list[Step], own: str) -> str:
    key, first = _key(wanted, own), wanted[0].file
    stores = "".join(f'ATTR{{{step.file}}}="{step.text}", ' for step in wanted)
    return f'ENV{{{name}}}!="{key}", TEST=="{first}", {_SAFE[first]}{stores}ENV{{{name}}}="{key}"\n'


def _note(when: str, wanted: list[Step], uuid: str) -> str:
    """Matches if what the disk has could not be noted: what cannot be put back is not set."""
    files = dict.fromkeys(step.file for step in wanted)
    if SCHEDULER in files:
        files |= dict.fromkeys((*RESET_BY_SWITCH, *_SCHEDULERS_OWN, *_DEPTHS))
    elif LENGTH in files:
        files |= dict.fromkeys(_DEPTHS)
    return f'PROGRAM!="/bin/sh {NOTING} {when} /sys$devpath {NOTES} {uuid} {" ".join(files)}"'


_SCHEDULERS_OWN = ("queue/iosched/*",)
_DEPTHS = tuple(f"queue/{file}*" for file in DEPTHS)
"""What goes with the scheduler, and with the length of a queue: patterns, for not all are there."""


def _on_disk(step: Step) -> str:
    """A partition's queue is its disk's. Devices without `mq` (dm, multipath) have no real one."""
    lines = ""
    for kind, below in (("disk", ""), ("partition", "../")):
        there = f'ENV{{DEVTYPE}}=="{kind}", TEST=="{below}mq", TEST=="{below}{step.file}", '
        lines += f"{there}{_store(step, below)}\n"
    return lines


def _looked_at(fs_uuid: str) -> str:
    """Look once more at a disk that was closed; but once, however many arrays have rules."""
    mine = 'ACTION=="change", ENV{SYNTH_UUID}=="0", KERNEL!="loop*", ENV{AUTOTUNE_LOOK}!="1", '
    look = (
        'ENV{AUTOTUNE_LOOK}="1", '
        f"RUN+=\"/bin/sh -c 'sleep 1; echo change {fs_uuid} >/sys$devpath/uevent'\"\n"
    )
    return "".join(
        f'{mine}ENV{{DEVTYPE}}=="{kind}", TEST=="{queue}", {look}'
        for kind, queue in (("disk", "mq"), ("partition", "../mq"))
    )


def _at_least(number: int) -> str:
    """A pattern for the texts of a speed that is no lower: "200000 (system)"."""
    digits = str(number)
    some = [f"{digits}", f"[1-9]{'[0-9]' * len(digits)}*"]
    for place, digit in enumerate(digits):
        if digit != "9":
            more = f"[{int(digit) + 1}-9]" if digit != "8" else "9"
            some.append(digits[:place] + more + "[0-9]" * (len(digits) - place - 1))
    return "|".join(f"{each} (*)" if not each.endswith("*") else each for each in some)


def _at_most(number: int) -> str:
    """A pattern for the texts of a speed that is no higher."""
    digits = str(number)
    some = ["[0-9]" * count for count in range(1, len(digits))] + [digits]
    for place, digit in enumerate(digits):
        if digit != "0":
            less = f"[0-{int(digit) - 1}]" if digit != "1" else "0"
            some.append(digits[:place] + less + "[0-9]" * (len(digits) - place - 1))
    return "|".join(f"{each} (*)" for each in some)
