"""A stranger's profile with commands smuggled into every string of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import Profile

PROFILE = load_profile(Path(__file__).parents[2] / "examples/profile.json")
UUID = PROFILE.proven_on.uuid
KNOBS = {
    **PROFILE.knobs,
    "scheduler": "mq-deadline",
    "nr_requests": 64,
    "max_sectors_kb": 512,
    "wbt_lat_usec": 0,
    "group_thread_cnt": 2,
    "rmw_level": 0,
    "preread_bypass_threshold": 16,
    "sync_io_depth": 8,
    "safe_mode_delay": 5000,
    "read_expire": 100,
    "fifo_batch": 4,
    "queue_depth": 8,
    "rq_affinity": 2,
}
SMUGGLED = (
    "\ntouch {mark}\n",
    "$(touch {mark}) `touch {mark}`",
    "'; touch {mark}; '",
    '"; touch {mark}; "',
    "\nEND\ntouch {mark}\n",
    '\nRUN+="/bin/touch {mark}"\n',
    '", RUN+="/bin/touch {mark}", ENV{{X}}="',
    "\\\n[Service]\nExecStart=/bin/touch {mark}\n",
    "\r\n[script]\nscript=/bin/touch\n",
    "${{i:PROFILE_DIR}} ${{f:exec:touch:{mark}}} %(x)s %n",
    "{{{{ lookup('pipe', 'touch {mark}') }}}} {{% raw %}}",
    "\n- name: x\n  command: touch {mark}\n",
    "!!python/object/apply:os.system ['touch {mark}']",
    "../../etc/cron.d/x",
    "\u2028touch {mark}\u0085touch {mark}\x0b\x0c\x00\x1b[2J",
    "@STEPS@ @NAME@",
    "-n --out=/etc/x\n",
)


def profile(**changes: Any) -> Profile:
    return PROFILE.model_copy(update={"knobs": KNOBS, **changes})


def smuggling(text: str) -> Profile:
    """A profile with this in every string that a stranger is free in. It was not parsed, which
    refuses what cannot be printed: an export has to hold by itself."""
    where = PROFILE.proven_on.model_copy(update={"kernel": text})
    return profile(name=text, workload=text, proven_on=where)


@pytest.fixture(params=SMUGGLED, ids=range(len(SMUGGLED)))
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Profile]:
    """A stranger's profile; in the end no command of theirs has run."""
    mark = tmp_path / "mark"
    yield smuggling(request.param.format(mark=mark))
    assert not mark.exists()
