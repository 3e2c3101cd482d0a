"""What every export must hold: a profile from a stranger carries values, and nothing else.

Each format is read the way its consumer reads it, with commands smuggled into every string of the
profile, and is then to say the same as the profile without them.
"""

import configparser
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from smuggled import PROFILE, UUID, profile, theirs

from autotune.errors import UsageError
from autotune.export import FORMATS
from autotune.export.steps import steps
from autotune.export.udev import _at_least, _at_most, forms, persisted
from autotune.knobs.profile_file import parse_profile
from autotune.problem.profile import Profile

__all__ = ["theirs"]


def named(files: dict[str, str]) -> dict[str, str]:
    """The same with the profile's own name in place of the stranger's, which is in file names and
    the few lines that name the profile's own files."""
    return {re.sub("profile[_-][a-z0-9_-]+", "profile", path): text for path, text in files.items()}


def code(text: str) -> list[str]:
    """The lines that are no comments, without the profile's name where it may stand."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    given = re.compile(r"^(name=|Description=|summary=).*|profile[_-][a-z0-9_-]+")
    return [given.sub(r"\1", line) for line in lines]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_nothing_of_a_strangers_text_gets_beyond_comments_and_names(
    name: str, theirs: Profile
) -> None:
    ours, others = (named(FORMATS[name](each, UUID)) for each in (profile(), theirs))
    assert others.keys() == ours.keys()
    for path, text in others.items():
        assert text.isascii()
        assert text.isprintable() or set(text) - {"\n"} <= set(map(chr, range(32, 127)))
        if path.endswith("README.md"):
            continue
        assert code(text) == code(ours[path]), path
    for path in FORMATS[name](theirs, UUID):
        assert re.fullmatch(r"[A-Za-z0-9@_][A-Za-z0-9@._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*", path)
        assert ".." not in path


def test_json_gives_back_what_it_was_given(theirs: Profile) -> None:
    ((path, text),) = FORMATS["json"](theirs, UUID).items()
    assert json.loads(text) == json.loads(theirs.model_dump_json())
    if theirs.name.isprintable():
        assert parse_profile(text, "export") == theirs
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*\.json", path)


UDEV_LINE = re.compile(
    r'((SUBSYSTEM|ACTION|KERNEL|TEST|ENV\{[A-Z_]+\}|ATTR\{[a-z_/.]+\})(==|!=)"[^"\\$%]*"'
    r'|(IMPORT\{db\}|ENV\{AUTOTUNE_[A-Z]+\})="[A-Za-z0-9_-]+"'
    r'|ATTR\{(\.\./)?(md|queue|queue/iosched|device)/[a-z_]+\}="[a-z0-9.-]+"'
    r'|(GOTO|LABEL)="autotune_[a-z]+")'
)


NOTING = re.compile(
    'PROGRAM!="/bin/sh /etc/autotune/persisted/disk-originals.sh (before|after) /sys\\$devpath '
    f'/run/autotune/disks {UUID}( (queue|queue/iosched|device)/[a-z_]*\\*?)+"'
)
READ_AHEAD_KEPT = re.compile(
    r'PROGRAM=="/bin/cat /sys\$devpath/(\.\./)?queue/read_ahead_kb"'
    r'|ATTR\{(\.\./)?queue/read_ahead_kb\}="\$result"'
)


@pytest.mark.parametrize("is_persisted", [False, True])
def test_udev_rules_only_compare_set_attributes_and_look_again(
    theirs: Profile, is_persisted: bool
) -> None:
    """And note what a disk had, where a profile is persisted."""
    (text,) = FORMATS["udev"](theirs, UUID).values()
    if is_persisted:
        text = persisted(theirs, UUID)
    event = f"echo change {forms(UUID)[1]} >/sys$devpath/uevent"
    assignments = []
    for line in code(text):
        for token in line.split(", "):
            look = f"RUN+=\"/bin/sh -c 'sleep 1; {event}'\""
            noting = is_persisted and NOTING.fullmatch(token)
            kept = READ_AHEAD_KEPT.fullmatch(token)
            assert UDEV_LINE.fullmatch(token) or token == look or noting or kept
            # Of a longer one, udevd before 248 keeps the first 1024 bytes.
            assert len(token) < 900
            if re.match(r"ATTR\{[^}]*\}=[^=]", token) and not kept:
                assignments.append(token.removeprefix("ATTR{").removeprefix("../"))
    wanted = {f'{step.file}}}="{step.text}"' for step in steps(theirs)}
    assert set(assignments) == wanted


def test_a_copy_of_exported_rules_in_an_initramfs_does_nothing() -> None:
    """There it outlives its removal: initramfs-tools puts it into lib/udev/rules.d, dracut leaves
    it where it was."""
    ((name, text),) = FORMATS["udev"](PROFILE, UUID).items()
    rules = list(code(text))
    assert rules[3] == f'TEST!="/etc/udev/rules.d/{name}", GOTO="autotune_end"'
    assert rules[4] == 'TEST=="/etc/initrd-release", GOTO="autotune_end"'
    assert all("GOTO=" in line for line in rules[:3])


@pytest.mark.parametrize("name", ["tuned", "systemd"])
def test_ini_files_have_their_own_sections_alone(name: str, theirs: Profile) -> None:
    text = next(
        t for p, t in FORMATS[name](theirs, UUID).items() if p.endswith(("conf", "service"))
    )
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters="=")
    parser.read_string(text)
    found = {section: set(parser[section]) for section in parser.sections()}
    assert (
        found
        == {
            "tuned": {"main": {"summary"}, "script": {"script"}},
            "systemd": {
                "Unit": {"description", "bindsto", "after"},
                "Service": {"type", "remainafterexit", "execstart", "execstoppost"},
                "Install": {"wantedby"},
            },
        }[name]
    )


def test_yaml_files_say_the_same_whatever_the_profile_says(theirs: Profile) -> None:
    ours, others = (named(FORMATS["ansible"](each, UUID)) for each in (profile(), theirs))
    for path in others:
        if path.endswith(".yml"):
            assert yaml.safe_load(others[path]) == yaml.safe_load(ours[path])
        assert ("{{" in others[path]) == ("{{" in ours[path])


@pytest.fixture
def ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command, in a folder with the role."""
    for path, text in FORMATS["ansible"](profile(), UUID).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setenv("ANSIBLE_ROLES_PATH", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_REMOTE_TEMP", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return Path(sys.executable).with_name("ansible-playbook")


def test_ansible_takes_the_role(tmp_path: Path, ansible: Path) -> None:
    (tmp_path / "site.yml").write_text("- hosts: all\n  roles: [autotune_profile_md0_quick]\n")
    command = [ansible, "--syntax-check", "-i", "x,", tmp_path / "site.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "/dev/md-gone is no array with a UUID on this host"),
        ("autotune_array_uuid: f6e606b3:8ce3aa59:41c0aa90:d0ab4f9c", ""),
        ("autotune_array_uuid: /etc", "may be its UUID as mdadm --detail shows it"),
    ],
)
def test_the_role_takes_back_the_rule_of_an_array_that_is_gone(
    tmp_path: Path, ansible: Path, more: str, said: str
) -> None:
    """There is neither here, so nothing is changed."""
    (tmp_path / "site.yml").write_text(
        "- hosts: all\n  connection: local\n  gather_facts: false\n"
        "  roles: [autotune_profile_md0_quick]\n"
        f"  vars:\n    autotune_array: /dev/md-gone\n    autotune_state: absent\n    {more}\n"
    )
    command = [ansible, "-i", "x,", "-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run(
        [*command, tmp_path / "site.yml"], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode == 0) is not bool(said), done.stdout + done.stderr
    assert said in " ".join(done.stdout.split())
    assert "changed=0" in done.stdout


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"no_such_knob": 1}, "no setting"),
        ({"stripe_cache_size": 32769}, "17 to 32768"),
        ({"stripe_cache_size": "256"}, "17 to 32768"),
        ({"stripe_cache_size": "a-b"}, "17 to 32768"),
        ({"read_ahead_kb": -4}, "0 to"),
        ({"scheduler": "none,bfq"}, "scheduler"),
        ({"scheduler": "touch"}, "scheduler"),
        ({"scheduler": 5}, "scheduler"),
        ({"sync_speed_min": 5, "sync_speed_max": 4}, "above"),
        ({"preread_bypass_threshold": 18, "stripe_cache_size": 17}, "above"),
        ({}, "sets nothing"),
        ({"scheduler": "kyber", "low_latency": 0}, "low_latency is for bfq"),
    ],
)
def test_what_is_out_of_its_range_is_exported_in_no_format(
    name: str, knobs: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        FORMATS[name](profile(knobs=knobs), UUID)


@pytest.mark.parametrize("name", ["udev", "tuned"])
@pytest.mark.parametrize("uuid", ["", "x" * 32, f"{UUID[:31]}\n"])
def test_a_format_for_one_array_needs_its_uuid(name: str, uuid: str) -> None:
    with pytest.raises(UsageError, match="--array"):
        FORMATS[name](profile(), uuid)


@pytest.mark.parametrize("name", ["shell", "tuned", "ansible", "systemd"])
def test_a_level_that_md_does_not_have_is_refused(name: str) -> None:
    where = PROFILE.proven_on.model_copy(update={"level": "raid6\nrm -rf /"})
    with pytest.raises(UsageError, match="md does not have"):
        FORMATS[name](profile(proven_on=where), UUID)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_every_format_says_what_it_was_proven_on_and_what_it_cannot(name: str) -> None:
    for path, text in FORMATS[name](PROFILE, UUID).items():
        said = text.replace("\n#  ", "").replace("\n", " ")
        for words in ("raid6 of 5 hdd", "chunk 64 KiB", "6.1.176", "quick", "1.10 to 1.39"):
            assert words in said, (path, words)
        assert "2026-11-21" in said
        assert re.search("(# Cannot:|- It cannot) ", text), path


def test_the_speeds_keep_their_order_whatever_is_there() -> None:
    both = [(s.file, s.text) for s in steps(profile()) if "sync_speed" in s.file]
    low, high = "md/sync_speed_min", "md/sync_speed_max"
    assert both == [(low, "1"), (high, "500000"), (low, "200000")]
    order = [step.file.split("/")[1] for step in steps(profile())]
    assert order.index("scheduler") < order.index("nr_requests") < order.index("iosched")
    assert order.index("stripe_cache_size") < order.index("preread_bypass_threshold")


@pytest.mark.parametrize("limit", [1, 7, 9, 10, 89, 98, 99, 1000, 70_000, 199_999, 2**31 - 1])
def test_udev_patterns_compare_numbers(limit: int) -> None:
    near = {limit + d for d in (-11, -10, -9, -2, -1, 0, 1, 2, 9, 10, 11)} | {
        limit * 10,
        limit // 10,
    }
    for number in sorted(n for n in near if n > 0):
        for word in ("system", "local"):
            text = f"{number} ({word})"

            def matches(pattern: str, text: str = text) -> bool:
                return any(fnmatch.fnmatchcase(text, each) for each in pattern.split("|"))

            assert matches(_at_least(limit)) == (number >= limit), (number, limit)
            assert matches(_at_most(limit)) == (number <= limit), (number, limit)


def test_the_example_is_the_profile_of_a_run() -> None:
    assert json.loads(FORMATS["json"](PROFILE, UUID)["md0-quick.json"])["knobs"] == PROFILE.knobs
