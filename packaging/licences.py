"""The licences of what is bundled, from the wheels themselves, as debian/copyright."""

import re
import textwrap
import zipfile
from email.parser import Parser
from pathlib import Path

_LICENCE = re.compile(r"\.dist-info/(?:.*/)?(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*$", re.I)
_HEAD = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: autotune-md

Files: *
Copyright: the authors of autotune
License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.
"""


def copyright_of(top: Path, wheels: Path) -> str:
    """The text of debian/copyright for a package with these wheels in it."""
    assert "Apache License" in (top / "LICENSE").read_text()
    found = (p for p in sorted(wheels.glob("*.whl")) if not p.name.startswith("autotune_md"))
    return "\n".join([_HEAD, *map(_paragraph, found)])


def _paragraph(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(files.read(metadata).decode())
        texts = [
            files.read(name).decode("utf-8", "replace") for name in names if _LICENCE.search(name)
        ]
    name, version = told["Name"], told["Version"]
    short = told["License-Expression"] or (told["License"] or "").splitlines()[:1] or "see below"
    short = " ".join(short) if isinstance(short, list) else short
    whole = "\n\n".join(texts) or f"{name} has no licence file; its metadata says: {short}"
    owners = re.findall(r"(?im)^\W*(copyright (?:\(c\)|©|\d{4}).{0,200})$", whole)
    top_level = sorted({n.split("/")[0] for n in names if "/" in n and ".dist-info" not in n})
    places = " ".join(f"usr/lib/autotune/lib/*/{folder}/*" for folder in top_level)
    owner = "\n ".join(dict.fromkeys(o.strip() for o in owners[:20])) or f"the authors of {name}"
    body = textwrap.indent(
        "\n".join(line.rstrip() or "." for line in whole.splitlines()), " ", lambda _line: True
    )
    return (
        f"Files: {places}\nCopyright: {owner}\nLicense: {name}-{version}\n"
        f" {name} {version}: {short}\n .\n{body}\n"
    )
