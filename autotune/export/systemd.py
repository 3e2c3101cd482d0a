"""A oneshot unit around the script, for each array whose name it is given. systemd starts it when
the array's device appears, and stops it, which undoes, when that goes: so at boot and at each
assembly, in whatever order arrays and filesystems come."""

from autotune.export import shell
from autotune.export.header import comment
from autotune.export.steps import harmless
from autotune.problem.profile import Profile

_LACKS = (
    "set the scheduler of a disk that is replaced before the unit is restarted. The udev format "
    "does.",
    "rescale the values to other members or less memory; it refuses a stripe cache that would "
    "take over half of what is free.",
    "stop one of two such units of the same array: the values of both are undone. Stop the one of "
    "another profile first.",
)


def render(profile: Profile, _uuid: str) -> dict[str, str]:
    """The unit and its script."""
    name = shell.script_name(profile)
    how = (
        f"Install: {name}.sh as /usr/local/sbin/{name}, mode 755, and this file in "
        "/etc/systemd/system. Then, with the array's link in /dev/disk/by-id for LINK: "
        f"systemctl enable --now $(systemd-escape --path --template={name}@.service LINK)",
    )
    unit = _UNIT.format(name=name, title=harmless(profile.name))
    return {
        f"{name}@.service": comment(profile, *how, lacks=_LACKS) + unit,
        f"{name}.sh": shell.script(profile, _LACKS),
    }


_UNIT = """
[Unit]
Description=md array settings of the autotune profile {title} on %f
BindsTo=%i.device
After=%i.device

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/{name} apply %f
# Not ExecStop=, which a service that is stopped while it starts has none of. After a start that has
# failed, the script has put all back, and what is left is another profile's. A run or check of
# autotune, which undo does not go under, ends soon after its array. A shutdown takes all back by
# itself, and a sync, under which some values cannot be set, would delay it.
ExecStopPost=/bin/sh -c '[ "$$SERVICE_RESULT" = exit-code ] && exit; \
[ "$$(systemctl is-system-running)" = stopping ] && exit; for turn in 1 2 3 4 5 6; do \
"$$0" undo "$$1" && exit; sleep 10; done; exit 1' /usr/local/sbin/{name} %f

[Install]
WantedBy=%i.device
"""
