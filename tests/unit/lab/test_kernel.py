"""Which kernel a lab boots."""

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.lab.kernel import find_kernel, modules_of


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A kernel as its package has it."""
    kernel = tmp_path / "usr/bin/linux.uml"
    kernel.parent.mkdir(parents=True)
    kernel.touch(mode=0o755)
    (tmp_path / "usr/lib/uml/modules").mkdir(parents=True)
    return kernel


def test_a_kernel_comes_with_its_modules(unpacked: Path, tmp_path: Path) -> None:
    assert find_kernel(unpacked) == unpacked
    assert modules_of(unpacked) == tmp_path / "usr/lib/uml/modules"


def test_a_kernel_without_modules_is_refused(unpacked: Path) -> None:
    modules_of(unpacked).rmdir()
    with pytest.raises(UsageError, match="unpack the whole package"):
        find_kernel(unpacked)


@pytest.mark.parametrize("name", ["missing", ".", "text"])
def test_what_is_no_program_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    with pytest.raises(UsageError, match="is no program"):
        find_kernel(tmp_path / name)
