"""The package's scripts in the orders in which dpkg calls them, in a /run of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.store.opening import FILE_NAME

SCRIPTS = Path(__file__).parents[3] / "packaging/debian"
SYSTEMCTL = """#!/bin/sh
case $1 in
list-units)
    shift
    for unit in /run/active/*; do
        for pattern in "$@"; do
            case ${unit##*/} in $pattern) echo "${unit##*/} loaded active running" ;; esac
        done
    done ;;
stop) shift; for unit; do rm -f "/run/active/$unit"; done ;;
start) shift; for unit; do touch "/run/active/$unit"; done ;;
enable|disable)
    wants=/run/root/etc/systemd/system/x.wants; mkdir -p $wants
    for unit; do
        case $1/$unit in
        enable/autotune*) touch "$wants/$unit" ;;
        disable/autotune*) rm -f "$wants/$unit" ;;
        esac
    done ;;
is-enabled) false ;;
esac
"""
AUTOTUNE = """#!/bin/sh
[ ! -e /run/broken ] || exit 126
case "$*" in
"restore --all --state-dir "*)
    for folder; do :; done
    echo "$folder" >> /run/restored
    [ ! -e "$folder/cannot-restore" ] ;;
"service status") exit "$(cat /run/units-differ 2>/dev/null || echo 0)" ;;
esac
"""
WORLD = """
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
mkdir -p /run/systemd/system /run/autotune /run/active /var/lib/autotune/journal
touch /run/active/autotune-guard@md0.service /run/active/autotune-retune.timer
script() { name=$1; shift; sh -e "$SCRIPTS/autotune-md.$name" "$@"; }
begin_run() {
    echo x > /run/journal; printf '1\\n/run/journal\\n' > /run/autotune/array-of-a-run
    exec 9< /run/journal; flock 9
}
end_run() { exec 9<&-; }
"""
ELSEWHERE = """
mkdir -p '/run/its own/journal'
touch '/run/its own/journal/u.jsonl'
printf '1\\n/run/gone/journal/u.jsonl\\n/run/its own/journal/u.jsonl\\n' > /run/autotune/array-u
"""
OUT_OF_REACH = """
mkdir -p /run/autotune/records '/run/not mounted/applied'
{
    echo "/run/not mounted/applied/u.jsonl"
    for folder in '/run/not mounted/applied' '/run/not mounted' /run /; do
        echo "$(stat -c '%d %i' "$folder") $(stat -f -c %i "$folder") $folder"
    done
} > /run/autotune/records/applied-u
mount -t tmpfs none '/run/not mounted'
"""
UPGRADE_REFUSED = """
script prerm upgrade 2 && exit 1
script prerm failed-upgrade 1 && exit 1
script postinst abort-upgrade 2
"""
REMOVAL_REFUSED = """
script prerm remove && exit 1
script postinst abort-remove
"""
UPGRADED = """
script prerm upgrade 2
script postinst configure 1
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a /run of its own")


@pytest.mark.parametrize(
    "what",
    [
        UPGRADED,
        f"begin_run\n{UPGRADE_REFUSED}",
        f"begin_run\n{UPGRADE_REFUSED}\nend_run\n{UPGRADED}",
        # Whoever cuts it off between, so that nothing is there to be stopped the second time.
        f"begin_run\nscript prerm upgrade 2 && exit 1\nend_run\n{UPGRADED}",
        f"begin_run\n{REMOVAL_REFUSED}",
        f"touch /var/lib/autotune/cannot-restore\n{REMOVAL_REFUSED}",
        f"touch /var/lib/autotune/journal/u.waiting.jsonl\n{REMOVAL_REFUSED}",
        # With a state folder of its own, after one that is gone.
        f"{ELSEWHERE}\ntouch '/run/its own/cannot-restore'\n{REMOVAL_REFUSED}",
        f"{ELSEWHERE}\ntouch '/run/its own/journal/u.waiting.jsonl'\n{REMOVAL_REFUSED}",
        f"{OUT_OF_REACH}\n{REMOVAL_REFUSED}",
        f"{ELSEWHERE}\nexec 9< '/run/its own/journal/u.jsonl'\nflock 9\n{UPGRADE_REFUSED}",
    ],
)
def test_what_a_package_stopped_goes_on_after_it(tmp_path: Path, what: str) -> None:
    assert _active(tmp_path, what) == ["autotune-guard@md0.service", "autotune-retune.timer"]


def test_a_removed_package_leaves_nothing_running(tmp_path: Path) -> None:
    left = "script prerm remove\nscript postrm remove\n[ ! -e /run/autotune-md.stopped ]"
    assert _active(tmp_path, left) == []


def test_a_removed_package_leaves_nothing_in_force(tmp_path: Path) -> None:
    """Whatever state folder it was applied with."""
    said = _run(tmp_path, f"{ELSEWHERE}\nscript prerm remove\ncat /run/restored")
    assert "/run/its own\n/var/lib/autotune\n" in said


def test_nothing_is_undone_where_the_removal_is_refused(tmp_path: Path) -> None:
    """Since what is recorded elsewhere cannot be reached."""
    _run(tmp_path, f"{OUT_OF_REACH}\n{REMOVAL_REFUSED}\n[ ! -e /run/restored ]")


@pytest.mark.parametrize(
    "then",
    [
        "mkdir '/run/not mounted/applied'\ntouch '/run/not mounted/applied/u.jsonl'",
        # Its folder is there, or what that was in, so somebody has removed it.
        "umount '/run/not mounted'",
        "umount '/run/not mounted'\nrmdir '/run/not mounted/applied'",
        "echo 1 > /run/autotune/records/applied-u",
    ],
)
def test_what_can_be_reached_or_is_gone_bars_no_removal(tmp_path: Path, then: str) -> None:
    assert _active(tmp_path, f"{OUT_OF_REACH}\n{then}\nscript prerm remove") == []


def test_a_program_that_does_not_start_bars_no_removal_where_nothing_is_left(
    tmp_path: Path,
) -> None:
    """Else the package could neither be removed nor replaced, and apt would be stuck."""
    assert _active(tmp_path, "touch /run/broken\nscript prerm remove") == []


@pytest.mark.parametrize("left", ["array-u", "records/applied-u"])
def test_what_a_program_that_does_not_start_has_left_is_named(tmp_path: Path, left: str) -> None:
    file = f"/run/autotune/{left}"
    made = f"touch /run/broken\nmkdir -p /run/autotune/records\necho 1 > {file}"
    said = _run(tmp_path, f"{made}\nscript prerm remove 2>&1 && exit 1\necho refused")
    assert f"and remove the package: {file}\n" in said


def test_a_refused_removal_says_what_can_be_done_by_hand(tmp_path: Path) -> None:
    made = "touch /var/lib/autotune/cannot-restore"
    said = _run(tmp_path, f"{made}\nscript prerm remove 2>&1 && exit 1\necho refused")
    assert "By hand: remove /etc/udev/rules.d/99-autotune-*.rules and" in said


@pytest.mark.parametrize(
    ("code", "installed", "told"),
    [(1, True, True), (0, True, False), (2, True, False), (1, False, False)],
)
def test_an_update_tells_of_units_of_another_version(
    tmp_path: Path, code: int, installed: bool, told: bool
) -> None:
    units = "/run/root/etc/systemd/system"
    made = f"export DPKG_ROOT=/run/root\nmkdir -p {units}\necho {code} > /run/units-differ\n"
    made += f"touch {units}/autotune-retune.service\n" if installed else ""
    said = _run(tmp_path, f"{made}script postinst configure 1 2>&1")
    assert ("are of another version. Call autotune service install" in said) is told


@pytest.mark.parametrize("how", ["remove", "purge"])
def test_the_locks_of_containers_stay(tmp_path: Path, how: str) -> None:
    made = "mount -t tmpfs none /dev\nmkdir -p /dev/autotune/array-u"
    _run(tmp_path, f"{made}\nscript postrm {how}\n[ -d /dev/autotune/array-u ]")


def test_a_purge_leaves_the_memory_of_other_installations(tmp_path: Path) -> None:
    _run(tmp_path, "touch /run/autotune/array-u\nscript postrm purge\n[ -e /run/autotune/array-u ]")


@pytest.mark.parametrize(
    "how",
    ["mount -t tmpfs none /var/lib/autotune", "cd /var/lib; mv autotune at; ln -s at autotune"],
)
def test_a_purge_ends_where_the_state_folder_is_a_mount_or_a_link(tmp_path: Path, how: str) -> None:
    made = f"{how}\ntouch /var/lib/autotune/autotune.db; cd /var/lib/autotune; held=$(pwd -P); cd /"
    _run(tmp_path, f'{made}\nscript postrm purge\n[ ! -e "$held/autotune.db" ]')


def test_a_purge_leaves_nothing_of_a_used_store(tmp_path: Path) -> None:
    used = (
        f"{sys.executable} -c 'from pathlib import Path; from autotune.store.database import Store"
    )
    used += f'; Store(Path("/var/lib/autotune"))\'\n[ -e /var/lib/autotune/{FILE_NAME}.lock ]'
    _run(tmp_path, f"{used}\nscript postrm purge\n[ ! -e /var/lib/autotune ]")


@pytest.mark.parametrize("below", ["", "/fleet/of/ours"])
def test_a_purge_leaves_what_is_not_of_autotune(tmp_path: Path, below: str) -> None:
    """Beside its files, where the folder is a link, and below a mount in it."""
    link = "mkdir /var/lib/big; rm -r /var/lib/autotune; ln -s big /var/lib/autotune"
    own = (
        f"mkdir -p /var/lib/big/designs /var/lib/big/profiles{below}; touch /var/lib/big/designs/d"
    )
    others = "mkdir /var/lib/shared /var/lib/big/photos; touch /var/lib/shared/s /var/lib/big/p"
    mount = f"mount --bind /var/lib/shared /var/lib/autotune/profiles{below}"
    purged = "[ ! -e /var/lib/big/designs ]\n[ ! -e /var/lib/autotune ]"
    left = "[ -e /var/lib/shared/s ]\n[ -e /var/lib/big/p ]\n[ -d /var/lib/big/photos ]"
    made = f"{link}\n{own}\n{others}\n{mount}"
    _run(tmp_path, f"{made}\nscript postrm purge\n{purged}\n{left}")


def test_a_removed_package_leaves_nothing_persisted(tmp_path: Path) -> None:
    """What is needs no state folder."""
    gone = "rm -r /var/lib/autotune\nscript prerm remove\ncat /run/restored"
    assert "/var/lib/autotune\n" in _run(tmp_path, gone)


@pytest.mark.parametrize("used", ["journal", "applied", ""])
def test_a_purge_leaves_what_another_installation_uses(tmp_path: Path, used: str) -> None:
    """Long after the removal."""
    file = f"/var/lib/autotune/{used}/u.jsonl"
    put = f"mkdir -p {Path(file).parent}; touch {file}\n" if used else ""
    left = "" if used else "! "
    _run(tmp_path, f"{put}script postrm purge\n{left}[ -d /var/lib/autotune ]")


def _active(folder: Path, what: str) -> list[str]:
    """The units that are active after these calls."""
    return _active_of(_run(folder, what))


def _active_of(said: str) -> list[str]:
    return said.partition("ACTIVE\n")[2].split()


def _run(folder: Path, what: str) -> str:
    """What these calls say, and in the end which units are active."""
    tools = folder / "tools"
    tools.mkdir()
    for name, text in (
        ("systemctl", SYSTEMCTL),
        ("autotune", AUTOTUNE),
        ("sleep", "#!/bin/sh\n"),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    script = f"SCRIPTS={SCRIPTS}\n{WORLD}\n{what}\necho ACTIVE\nls /run/active"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


GUARDED = """
export DPKG_ROOT=/run/root
units=$DPKG_ROOT/etc/systemd/system
mkdir -p $units/dev-md0.device.wants $DPKG_ROOT/dev/disk/by-id $DPKG_ROOT/etc/autotune
touch $DPKG_ROOT/dev/md0
ln -s ../../md0 $DPKG_ROOT/dev/disk/by-id/md-uuid-0:1:2:3
systemctl enable autotune-guard@md0.service
script prerm upgrade 2
"""
RENAMED = "autotune-guard@0:1:2:3.service"


@pytest.mark.parametrize("ceiling", ["50ms", "80ms", ""])
def test_a_guard_by_name_goes_on_by_uuid(tmp_path: Path, ceiling: str) -> None:
    """It had its ceiling in the unit, and has it in the configuration now, if there is one."""
    of_its_own = (
        'mkdir "$units/autotune-guard@md0.service.d"; printf "[Service]\\nEnvironment='
        f'P99_CEILING={ceiling}\\n" > "$units/autotune-guard@md0.service.d/override.conf"'
    )
    configured = "echo 'guard_p99 = \"40ms\"' > $DPKG_ROOT/etc/autotune/config.toml"
    more = {"80ms": of_its_own, "50ms": "", "": configured}[ceiling]
    script = f"{GUARDED}{more}\nscript postinst configure 1\ncat $units/*.d/*.conf || true\n"
    script += "ls $units/*/ | grep -v conf"
    done = _run(tmp_path, script)
    assert _active_of(done) == [RENAMED, "autotune-retune.timer"]
    assert "autotune-guard@md0" not in done.partition("x.wants")[2]
    assert RENAMED in done.partition("x.wants")[2]
    assert (f"--p99-ceiling {ceiling}\n" in done) == bool(ceiling)
    assert ("--p99-ceiling" in done) == bool(ceiling)


def test_a_guard_of_an_array_that_is_not_here_is_told(tmp_path: Path) -> None:
    script = f"{GUARDED}rm $DPKG_ROOT/dev/md0\nscript postinst configure 1 2>&1"
    assert "there is no md0 here" in _run(tmp_path, script)
