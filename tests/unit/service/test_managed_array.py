"""What a pass of re-tuning refuses to look at."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest
from fake_sysfs import raid6
from some_profile import profile

from autotune.errors import RefusalError
from autotune.service.config import Config
from autotune.service.managed_array import ManagedArray
from autotune.system.array import read_array


def test_a_setting_that_the_array_does_not_have_any_more_is_named(tmp_path: Path) -> None:
    """As after `mdadm --grow --level=0`, where a missing file of sysfs would say little."""
    root = raid6(tmp_path, "raid0").root
    array = read_array("md0", root)
    with pytest.raises(RefusalError, match="has no stripe_cache_size, which the profile") as told:
        ManagedArray(array, profile(), Config().care(array.uuid), tmp_path, MagicMock())
    assert "autotune restore /dev/md0" in str(told.value)
