"""The package's scripts in the orders in which dpkg calls them, in a /run of their own."""

import os
import subprocess
from pathlib import Path

import pytest

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
esac
"""
AUTOTUNE = """#!/bin/sh
case "$*" in "restore --all") [ ! -e /run/cannot-restore ] ;; esac
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
        f"touch /run/cannot-restore\n{REMOVAL_REFUSED}",
        f"touch /var/lib/autotune/journal/u.waiting.jsonl\n{REMOVAL_REFUSED}",
    ],
)
def test_what_a_package_stopped_goes_on_after_it(tmp_path: Path, what: str) -> None:
    assert _active(tmp_path, what) == ["autotune-guard@md0.service", "autotune-retune.timer"]


def test_a_removed_package_leaves_nothing_running(tmp_path: Path) -> None:
    left = "script prerm remove\nscript postrm remove\n[ ! -e /run/autotune-md.stopped ]"
    assert _active(tmp_path, left) == []


def _active(folder: Path, what: str) -> list[str]:
    """The units that are active after these calls."""
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
    return done.stdout.partition("ACTIVE\n")[2].split()
