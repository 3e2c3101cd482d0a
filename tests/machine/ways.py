"""The two ways to install: the Debian package, and the wheel in an environment of root's."""

from dataclasses import dataclass

INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends"
PIP = "/opt/autotune/bin/pip install -q --no-index --find-links=/var/cache/wheels"


@dataclass(frozen=True)
class Way:
    """The commands, as docs/how-to/install.md has them."""

    install: str
    upgrade: str
    remove: str
    python: str
    """The interpreter that the program runs in."""
    is_package: bool


PACKAGE = Way(
    install=f"{INSTALL} /root/autotune.deb",
    upgrade=f"{INSTALL} /root/next.deb",
    remove="apt-get purge -y -q autotune-md",
    python="/usr/lib/autotune/bin/python3",
    is_package=True,
)
WHEEL = Way(
    install=f"{INSTALL} fio python3-venv && python3 -m venv /opt/autotune && {PIP} /root/*.whl && "
    "ln -s /opt/autotune/bin/autotune /usr/local/bin/autotune",
    upgrade="systemctl stop 'autotune-guard@*' && "
    f"{PIP} --force-reinstall --no-deps /root/*.whl && autotune service install",
    remove="autotune service remove && autotune restore --all && rm /usr/local/bin/autotune && "
    "rm -rf /opt/autotune /var/lib/autotune /etc/autotune",
    python="/opt/autotune/bin/python3",
    is_package=False,
)
