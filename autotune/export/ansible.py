"""An Ansible role: sets the values with the script, keeps them with a udev rule, verifies, and
takes all of it back."""

from importlib import resources

from autotune.export import shell, udev
from autotune.export.header import comment, proven
from autotune.export.steps import slug
from autotune.problem.profile import Profile

_LACKS = (
    "rescale the values to other members or less memory; it fails, changing nothing, where the "
    "stripe cache would take over half of what is free.",
    "take back values that a restart or an assembly has set since, but until the next one: with "
    "the state absent the rule is gone, and so are its values after a restart.",
)


def render(profile: Profile, _uuid: str) -> dict[str, str]:
    """The role's folder. The array is a variable; its UUID is found on each host."""
    role = role_name(profile)
    header = comment(profile, lacks=_LACKS)
    files = {
        "files/apply.sh": shell.script(profile, _LACKS),
        "templates/udev.rules.j2": udev.exported(
            profile,
            "{{ autotune_md_uuid }}",
            "{{ autotune_fs_uuid }}",
            "{{ autotune_uuid }}",
        ),
    }
    for name in ("tasks/main", "tasks/present", "tasks/absent", "handlers/main", "defaults/main"):
        text = resources.files("autotune.export").joinpath("role", *f"{name}.yml".split("/"))
        files[f"{name}.yml"] = header + text.read_text()
    lacks = "\n".join(f"- It cannot {text}" for text in _LACKS)
    files["README.md"] = _README.format(role=role, proven="\n".join(proven(profile)), lacks=lacks)
    return {f"{role}/{name}": text for name, text in files.items()}


def role_name(profile: Profile) -> str:
    """The role's name: Ansible takes letters, digits and underscores."""
    return f"autotune_profile_{slug(profile).replace('-', '_')}"


_README = """# {role}

{proven}

    - hosts: storage
      become: true
      roles:
        - role: {role}
          vars:
            autotune_array: /dev/md0

The role sets the values on the array, installs a udev rule that brings them back at each assembly,
and verifies that they are in effect. It refuses an array of another level, chunk or kind of disks.
`ansible-playbook --check` says what it would change. With `autotune_state: absent` it takes the
rule away and puts back what the array had before. If the array is stopped or gone, also set
`autotune_array_uuid`, as `mdadm --detail` showed it.

{lacks}
"""
