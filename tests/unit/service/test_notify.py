"""Who hears of a pass: the administrator's command, Prometheus, the next pass."""

import json
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

import fake_sysfs
import pytest
from prometheus_client.parser import text_string_to_metric_families
from small_disk import fill, small_disk

from autotune.errors import AutotuneError
from autotune.guard.loop import Window
from autotune.guard.metrics import GuardMetricsFile
from autotune.problem.figure import Estimate
from autotune.service import history
from autotune.service import notify as notifying
from autotune.service.config import Notify
from autotune.service.history import MOST_PASSES, PassRecord, Remembered
from autotune.service.metrics import ArrayMetrics, write_metrics
from autotune.service.metrics_files import remove_all
from autotune.service.notify import log, notify
from autotune.service.policy import LastSeen, Pass
from autotune.system.array import find_array

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_command_hears_of_the_event_and_no_shell_does(tmp_path: Path) -> None:
    out = tmp_path / "out"
    hook = Notify(command=("/usr/bin/tee", str(out), str(tmp_path / "$(id)")))
    assert notify("adopted", "/dev/md0", "u", "`id`; $HOME", hook) == ""
    assert (tmp_path / "$(id)").exists()
    document = json.loads(out.read_text())
    assert (document["event"], document["text"]) == ("adopted", "`id`; $HOME")


def test_a_command_that_fails_is_told_of_and_no_more() -> None:
    assert "exit code 1" in notify("failed", "d", "u", "t", Notify(command=("/bin/false",)))
    assert "cannot be run" in notify("failed", "d", "u", "t", Notify(command=("/no/such",)))


SYSTEMD_RUN = """#!/bin/sh
# Hands over what it was given, as systemd would.
for word; do
    case $word in
    --property=StandardInputData=*) data=${word#*Data=} ;;
    --) break ;;
    esac
    echo "$word" >> LOG
done
while [ "$1" != -- ]; do shift; done
shift
echo "$data" | base64 -d | "$@"
"""


def test_under_systemd_the_command_runs_in_a_unit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass has no network and may change to no other group; what it starts has all that."""
    out, log = tmp_path / "out", tmp_path / "log"
    fake = tmp_path / "systemd-run"
    fake.write_text(SYSTEMD_RUN.replace("LOG", str(log)))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(notifying, "_under_systemd", lambda: True)
    hook = Notify(command=("/usr/bin/tee", str(out)))
    assert notify("adopted", "/dev/md0", "u", "`id`; $HOME\n", hook) == ""
    assert json.loads(out.read_text())["text"] == "`id`; $HOME\n"
    said = log.read_text().splitlines()
    assert "--property=Type=oneshot" in said
    assert not any("Protect" in word or "Private" in word for word in said)
    words = notifying.in_a_unit(("/bin/echo", "$HOME", "$$"), b"{}")
    assert words[words.index("--") + 1 :] == ["/bin/echo", "$$HOME", "$$$$"]
    failing = notify("failed", "d", "u", "t", Notify(command=("/bin/false",)))
    assert "failed in its unit" in failing


def test_a_command_that_others_can_change_is_not_run_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    hook, out = tmp_path / "hook", tmp_path / "out"
    hook.write_text(f"#!/bin/sh\ncat > {out}\n")
    for path, mode in ((hook, 0o775), (hook, 0o757), (tmp_path, 0o777)):
        hook.chmod(0o755)
        path.chmod(mode)
        for command in ((str(hook),), ("/bin/sh", str(hook))):
            said = notify("failed", "d", "u", "t", Notify(command=command))
            assert "was not run" in said
            assert "chmod go-w" in said or "belongs to" in said
    assert not out.exists()


def test_the_journal_gets_fields_and_no_line_of_a_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, logger = tmp_path / "out", tmp_path / "logger"
    logger.write_text(f'#!/bin/sh\n[ "$1" = --journald ] && cat > {out}\n')
    logger.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    log("adopted", "/dev/md0", "u", "better")
    assert not out.exists()
    monkeypatch.setenv("INVOCATION_ID", "1")
    log("adopted", "/dev/md0", "u", "better\nAUTOTUNE_OUTCOME=failed")
    lines = out.read_text().splitlines()
    assert "AUTOTUNE_OUTCOME=adopted" in lines
    assert "AUTOTUNE_OUTCOME=failed" not in lines
    assert all("=" in line for line in lines)


def test_what_is_not_wanted_is_not_told(tmp_path: Path) -> None:
    hook = Notify(command=("/usr/bin/tee", str(tmp_path / "out")), on=("failed",))
    assert notify("adopted", "/dev/md0", "u", "text", hook) == ""
    assert notify("adopted", "/dev/md0", "u", "text", None) == ""
    assert not (tmp_path / "out").exists()


def test_prometheus_can_read_the_metrics(tmp_path: Path) -> None:
    array = ArrayMetrics(
        "/dev/md0", "u", 'a "name"\n', True, 1e9, 1.4, (1.3, 1.5), "better", 0.9,
        (("resync.p99", 0.02),), (("resync.p99", 0.05),),
    )  # fmt: skip
    file = tmp_path / "autotune.prom"
    write_metrics(file, [array, ArrayMetrics("/dev/md1", "v", "", False)])
    samples = {
        (s.name, s.labels["device"], s.labels.get("verdict", "")): s.value
        for family in text_string_to_metric_families(file.read_text())
        for s in family.samples
    }
    assert samples["autotune_gain_ratio", "/dev/md0", ""] == 1.4
    assert samples["autotune_gain_low_ratio", "/dev/md0", ""] == 1.3
    assert samples["autotune_gain_high_ratio", "/dev/md0", ""] == 1.5
    assert samples["autotune_verdict", "/dev/md0", "better"] == 1
    assert samples["autotune_verdict", "/dev/md0", "worse"] == 0
    assert samples["autotune_p99_ceiling_seconds", "/dev/md0", ""] == 0.05
    assert ("autotune_gain_ratio", "/dev/md1", "") not in samples
    with pytest.raises(AutotuneError, match="textfile"):
        write_metrics(tmp_path / "none" / "autotune.prom", [array])


def test_metrics_go_through_no_link_in_a_folder_that_others_can_write(tmp_path: Path) -> None:
    array, mine = ArrayMetrics("/dev/md0", "u", "", False), tmp_path / "mine"
    mine.write_text("mine")
    with small_disk(tmp_path / "disk") as folder:
        file = folder / "autotune.prom"
        # What prometheus_client's own writer calls its temporary file.
        for link in (file, Path(f"{file}.{os.getpid()}.{threading.get_ident()}")):
            link.symlink_to(mine)
        write_metrics(file, [array])
        assert mine.read_text() == "mine"
        assert not file.is_symlink()
        assert file.stat().st_mode & 0o777 == 0o644
        fill(folder)
        names = sorted(folder.iterdir())
        with pytest.raises(AutotuneError, match="No space left"):
            write_metrics(file, [array])
        assert sorted(folder.iterdir()) == names


def test_passes_are_remembered_and_old_ones_forgotten(tmp_path: Path) -> None:
    known = LastSeen("print", {"stripe_cache_size": 256}, {"write.throughput": Estimate(1e8, 0.1)})
    done = Pass("unchanged", (), None, None, known, known.figures, 1.0)
    kept = history.load(tmp_path, "u")
    assert kept.known is None
    for number in range(MOST_PASSES + 5):
        record = PassRecord(at=NOW, outcome="unchanged", trials=number)
        kept = kept.after(done, record, {"resync.p99": 5e7})
    history.save(kept, tmp_path, "u")
    again = history.load(tmp_path, "u")
    assert again == kept
    assert again.known == known
    assert len(again.passes) == MOST_PASSES
    assert again.passes[-1].trials == MOST_PASSES + 4


@pytest.mark.parametrize("text", ["", "{}}", '{"fingerprint": 3}', '{"other": 1}', "[" * 5000])
def test_a_memory_that_is_damaged_is_named(tmp_path: Path, text: str) -> None:
    path = history.path_of(tmp_path, "u")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(AutotuneError, match="remove it, and the next pass is a first one"):
        history.load(tmp_path, "u")


def test_an_empty_memory_is_a_first_pass() -> None:
    assert Remembered().known is None


def test_a_pass_that_failed_is_remembered_and_what_is_compared_with_stays() -> None:
    known = LastSeen("print", {"stripe_cache_size": 256}, {"write.throughput": Estimate(1e8, 0.1)})
    done = Pass("unchanged", (), None, None, known, known.figures, 1.0)
    kept = Remembered().after(done, PassRecord(at=NOW, outcome="unchanged"), {})
    failed = kept.failed(PassRecord(at=NOW, outcome="failed", reasons=("why",)))
    assert failed.known == known
    assert [record.outcome for record in failed.passes] == ["unchanged", "failed"]


def test_a_guard_tells_prometheus_what_it_sees_and_goes_on_without(tmp_path: Path) -> None:
    said: list[str] = []
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    told = GuardMetricsFile(tmp_path / "all.prom", array, 5e7, said.append)
    known = (0.0, 2e7, 2e7, 2e7, 600, "probe", 1e7, 9000, None, 0.5, 50.0, 40.0, None)
    window = Window(*known, out_of_reach=True, finish_s=9.0, needed_kib=None, impossible=True)
    told.window(window)
    file = tmp_path / "all-guard-md0.prom"
    assert re.search(r"^autotune_guard_p99_seconds\{.*\} 0\.02$", file.read_text(), re.MULTILINE)
    assert re.search(r"^autotune_guard_ceiling_out_of_reach\{.*\} 1\.0$", file.read_text(), re.M)
    for name, value in (
        ("left_low_seconds", 40),
        ("finish_timestamp_seconds", 9),
        ("impossible", 1),
    ):
        assert re.search(rf"^autotune_guard_{name}\{{.*\}} {value}\.0$", file.read_text(), re.M)
    assert not re.search(r"^autotune_guard_left_high_seconds\{", file.read_text(), re.M)
    told.over()
    assert re.search(r"^autotune_guard_ceiling_out_of_reach\{.*\} 0\.0$", file.read_text(), re.M)
    told.over(released=True)
    told.over()
    assert re.search(r"^autotune_guard_ceiling_out_of_reach\{.*\} 1\.0$", file.read_text(), re.M)
    assert re.search(r"^autotune_guard_active\{.*\} 0\.0$", file.read_text(), re.MULTILINE)
    assert not re.search(r"^autotune_guard_p99_seconds\{", file.read_text(), re.MULTILINE)
    told = GuardMetricsFile(tmp_path / "new" / "all.prom", array, 5e7, said.append)
    told.window(window)
    told.over()
    assert len(said) == 1
    assert "cannot be written" in said[0]
    # It is tried again: the disk may have been full for a moment.
    (tmp_path / "new").mkdir()
    told.window(window)
    assert (tmp_path / "new/all-guard-md0.prom").exists()
    GuardMetricsFile(None, array, 5e7, said.append).window(window)
    assert len(said) == 1


def test_a_guard_that_is_refused_says_nothing_of_the_one_at_work(tmp_path: Path) -> None:
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    refused = GuardMetricsFile(tmp_path / "all.prom", array, 5e7, pytest.fail)
    refused.end()
    assert not list(tmp_path.glob("*.prom"))
    refused.over()
    refused.end()
    assert (tmp_path / "all-guard-md0.prom").exists()


def test_an_array_that_has_another_name_now_has_its_metrics_once(tmp_path: Path) -> None:
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    told = (tmp_path / "all-guard-md127.prom", tmp_path / "all-check-md127.prom")
    other, linked = tmp_path / "all-guard-md5.prom", tmp_path / "all-guard-md6.prom"
    for path in told:
        path.write_text(f'autotune_guard_active{{device="/dev/md127",uuid="{array.uuid}"}} 1.0\n')
    other.write_text('autotune_guard_active{device="/dev/md5",uuid="another"} 1.0\n')
    linked.symlink_to(told[0])
    GuardMetricsFile(tmp_path / "all.prom", array, 5e7, pytest.fail).over()
    assert sorted(tmp_path.glob("*.prom")) == sorted(
        (tmp_path / "all-guard-md0.prom", told[1], other, linked)
    )
    gone = remove_all(tmp_path / "all.prom")
    assert {path.name for path in gone} >= {"all-guard-md0.prom", "all-check-md127.prom"}
    assert sorted(path.name for path in tmp_path.glob("*.prom")) == ["all-guard-md6.prom"]
