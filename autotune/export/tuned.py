"""A TuneD profile folder for /etc/tuned/profiles, or for /etc/tuned before TuneD 2.23.

It runs the script, through TuneD's script plugin: start, verify, stop. Its sysfs plugin cannot
carry these values: it keeps no order, verifies "70000" against the "70000 (local)" that md shows,
names arrays mdX where names move, and is run once, while hotplugged disks are the disk plugin's.
"""

from autotune.export import shell
from autotune.export.header import comment
from autotune.export.steps import harmless
from autotune.export.udev import forms
from autotune.problem.profile import Profile

_LACKS = (
    "set the values again when the array is stopped and assembled while TuneD runs, or a disk "
    "is replaced; `tuned-adm verify` says so. The udev format does.",
    "go with a profile of TuneD's that sets read-ahead or the scheduler (include= one that does "
    "not).",
)


def render(profile: Profile, uuid: str) -> dict[str, str]:
    """The folder, for the array of this UUID. `script.sh` turns TuneD's words into the other's."""
    md_uuid, _ = forms(uuid)
    name = shell.script_name(profile)
    install = (
        "Install: this folder in /etc/tuned/profiles; before TuneD 2.23, in /etc/tuned. A newer "
        "TuneD does not look there. Move it when TuneD is upgraded."
    )
    header = comment(profile, install, f"Then: tuned-adm profile {name}", lacks=_LACKS)
    return {
        f"{name}/tuned.conf": header + _CONF.format(name=harmless(profile.name)),
        f"{name}/script.sh": "#!/bin/sh\n" + header + _SCRIPT.format(uuid=md_uuid),
        f"{name}/apply.sh": shell.script(profile),
    }


_CONF = """
[main]
summary=md array settings of the autotune profile {name}

[script]
script=${{i:PROFILE_DIR}}/script.sh
"""
_SCRIPT = """
array=/dev/disk/by-id/md-uuid-{uuid}
case $1 in
start) command=apply ;;
stop) command=undo ;;
verify) command=status ;;
*) exit 0 ;;
esac
exec sh "${{0%/*}}/apply.sh" $command $array
"""
