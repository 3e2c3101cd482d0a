"""A profile of raid6-hdd taken to another machine in every format, and read there by the tools that
the formats are for: on elsewhere.toml; `test_run.py` runs this there. Ansible: guest_ansible.py.

What systemd makes of a unit cannot be seen here, where it does not run; `systemd-analyze` reads it,
and what it would start and stop is run.
"""

import configparser
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import autotune, knob_files, wait_until

from autotune.export import FOR_ONE_ARRAY
from autotune.export.shell import script_name
from autotune.knobs import by_name, read_setting
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.system.array import find_array

FOUND = load_profile(Path(os.environ.get("AUTOTUNE_PROFILE", "examples/profile.json")))
"""What a run on raid6-hdd found: 5 disks and 768 MiB, where this is 4 and 512."""
MORE = {"scheduler": "bfq", "low_latency": 0, "safe_mode_delay": 5000}
PROFILE = Path(tempfile.mkdtemp(), "profile.json")
save_profile(FOUND.model_copy(update={"knobs": {**FOUND.knobs, **MORE}}), PROFILE)
WANTED = load_profile(PROFILE).knobs
STRIPES = WANTED["stripe_cache_size"]
ARRAY = find_array("md0")
LINK = f"/dev/disk/by-id/md-uuid-{ARRAY.mdadm_uuid}"
NAME = script_name(load_profile(PROFILE))


@pytest.fixture(autouse=True)
def before() -> Iterator[dict[str, str]]:
    """How everything reads at the start, and has to again in the end."""
    now = knob_files()
    yield now
    assert knob_files() == now


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def export(format: str, out: Path, *words: str) -> None:
    profile = PROFILE
    if format in FOR_ONE_ARRAY:
        # Made for this array, it may have so much of its memory.
        found, profile = load_profile(PROFILE), out.with_name("own.json")
        here = found.proven_on.model_copy(update={"uuid": ARRAY.uuid})
        save_profile(found.model_copy(update={"proven_on": here}), profile)
    done = autotune("export", profile, "--format", format, "--out", out, *words, state=out)
    assert done.returncode == 0, done.stderr


def run(*words: object, code: int = 0) -> str:
    """Run a command and return what it says. AssertionError if it ends with another code."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == code, (command, done.stdout)
    return done.stdout


def in_effect() -> bool:
    return read_setting(ARRAY, tuple(by_name(name) for name in WANTED)) == WANTED


def test_the_script_applies_and_undoes(out: Path, before: dict[str, str]) -> None:
    export("shell", out)
    script = out / f"{NAME}.sh"
    assert os.access(script, os.X_OK)
    run(script, "status", "/dev/md0", code=1)
    run(script, "apply", LINK)
    assert in_effect()
    run(script, "undo", "/dev/md0")
    assert knob_files() == before


@pytest.mark.slow
def test_a_script_that_the_kernel_refuses_half_way_puts_all_back(
    out: Path, before: dict[str, str]
) -> None:
    export("shell", out)
    script = out / f"{NAME}.sh"
    script.write_text(script.read_text().replace(f"cache_size {STRIPES}", "cache_size 16"))
    said = run(script, "apply", "/dev/md0", code=2)
    assert "all are as they were" in said
    assert knob_files() == before


def test_udev_takes_the_rule(out: Path) -> None:
    export("udev", out, "--array", "/dev/md0")
    (rule,) = out.iterdir()
    assert rule.name == f"98-autotune-export-{ARRAY.uuid}.rules"
    installed = Path("/etc/udev/rules.d", rule.name)
    shutil.copy(rule, installed)
    try:
        said = run("udevadm", "test", "/sys/block/md0")
        assert rule.name in said
        assert not [line for line in said.splitlines() if rule.name in line and "nvalid" in line]
        run("udevadm", "control", "--reload")
        run("udevadm", "trigger", "--settle", "--action=change", "--subsystem-match=block")
        assert in_effect()
    finally:
        installed.unlink()
        run("udevadm", "control", "--reload")
        run("udevadm", "trigger", "--settle", "--action=change", "--subsystem-match=block")
        assemble_anew()


def assemble_anew() -> None:
    """A rule cannot undo: what was set goes with the assembly, and a disk's queue as it was."""
    run("mdadm", "--stop", "/dev/md0")
    members = [f"/dev/{member.name}" for member in ARRAY.members]
    for member in ARRAY.members:
        Path("/sys/block", member.disk, "queue/scheduler").write_text("mq-deadline")
    run("mdadm", "--assemble", "/dev/md0", *members)
    run("udevadm", "settle")


@pytest.mark.slow
def test_a_unit_is_one_that_systemd_takes(
    out: Path, before: dict[str, str], tmp_path: Path
) -> None:
    export("systemd", out)
    script = Path("/usr/local/sbin", NAME)
    script.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(out / f"{NAME}.sh", script)
    unit = out / f"{NAME}@.service"
    try:
        said = run("systemd-analyze", "verify", unit)
        assert NAME not in said
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(unit)
        start, stop = (
            shlex.split(parser["Service"][key].lstrip("-").replace("%f", LINK).replace("$$", "$"))
            for key in ("ExecStart", "ExecStopPost")
        )
        run(*start)
        assert in_effect()
        run("env", "SERVICE_RESULT=exit-code", *stop)
        assert in_effect()
        run("env", "SERVICE_RESULT=success", *stop)
        assert knob_files() == before
    finally:
        script.unlink()


@pytest.mark.slow
def test_tuned_applies_verifies_and_rolls_back(out: Path, before: dict[str, str]) -> None:
    export("tuned", out, "--array", str(ARRAY.uuid))
    new = Path("/usr/lib/tuned/profiles").is_dir()
    place = Path("/etc/tuned/profiles" if new else "/etc/tuned", NAME)
    shutil.copytree(out / NAME, place)
    Path("/run/dbus").mkdir(exist_ok=True)
    bus = subprocess.Popen(["dbus-daemon", "--system", "--nofork", "--nopidfile"])
    wait_until(lambda: Path("/run/dbus/system_bus_socket").exists(), 20, "the bus")
    # Without dynamic tuning and hotplug, of which this machine has nothing.
    tuned = subprocess.Popen(["tuned", "--profile", NAME])
    try:
        wait_until(in_effect, 60, "TuneD's start")
        wait_until(lambda: verified() == 0, 30, "TuneD's verify")
        Path("/sys/block/md0/md/stripe_cache_size").write_text("512")
        assert verified() == 1
        Path("/sys/block/md0/md/stripe_cache_size").write_text(str(STRIPES))
        run("tuned-adm", "off")
        wait_until(lambda: knob_files() == before, 30, "TuneD's rollback")
    finally:
        for process in (tuned, bus):
            process.terminate()
            process.wait(timeout=30)
        shutil.rmtree(place)


def verified() -> int:
    done = subprocess.run(["tuned-adm", "verify"], capture_output=True, check=False, text=True)
    print(done.stdout, done.stderr)
    return done.returncode
