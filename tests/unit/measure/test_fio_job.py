"""fio job files as workloads: what is carried over, and what a hostile one gets."""

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.measure.workload import Load, Probe, load_workload, parse_fio_job
from autotune.untrusted import MOST_TYPED_BYTES

JOB = """
; a file server
[global]
ioengine=libaio   # several requests in flight
direct=1
filename=/dev/sda
runtime=600
time_based
group_reporting

[Big Reads]
rw=read
bs=1M
iodepth=8

[mix]
rw = randrw
rwmixread=75
bs=8k
iodepth=16
numjobs=4
fsync=32

[mix]
stonewall
direct=0
rw=write
blocksize=65536

[foreground]
rw=randread
rate_iops=40
numjobs=2
"""


def test_each_section_is_a_phase_and_the_fixed_rate_one_the_probe_of_all() -> None:
    workload = parse_fio_job(JOB, "server.fio")
    assert [phase.name for phase in workload.phases] == ["idle", "big-reads", "mix", "mix-2"]
    assert [phase.weight for phase in workload.phases] == [0, 1, 1, 1]
    assert {phase.probe for phase in workload.phases} == {Probe(rate_iops=80)}
    assert [phase.load for phase in workload.phases[1:]] == [
        Load(rw="read", block_kib=1024, depth=8, read_percent=50),
        Load(rw="randrw", block_kib=8, depth=16, streams=4, read_percent=75, sync_every=32),
        Load(rw="write", block_kib=64, buffered=True, read_percent=50, sync_every=512),
    ]


def test_what_the_options_leave_open_is_as_fio_has_it() -> None:
    [phase] = parse_fio_job("[job]", "x").phases
    assert phase.load == Load(rw="read", block_kib=4, buffered=True, read_percent=50)
    [phase] = parse_fio_job("[1]\nrw=randwrite\niodepth=32\ndirect=1", "x").phases
    assert phase.name == "job-1"
    assert phase.load is not None
    assert phase.load.depth == 1, "the default engine has one request in flight, whatever iodepth"


def test_what_stands_under_global_holds_for_the_sections_after_it() -> None:
    text = "[global]\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=4k"
    loads = [phase.load for phase in parse_fio_job(text, "x").phases]
    assert [load.block_kib for load in loads if load] == [8, 16, 4]


@pytest.mark.parametrize("where", ["global", "job"])
@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("exec_prerun=rm -rf /", "exec_prerun, which runs a command"),
        ("exec_postrun = reboot", "exec_postrun, which runs a command"),
        ("write_bw_log=/etc/passwd", "write_bw_log, which writes files elsewhere"),
        ("write_iolog=/etc/passwd", "write_iolog, which writes files elsewhere"),
        ("read_iolog=|sh evil", "read_iolog, which replays"),
        ("verify=crc32c", "verify"),
        ("verify_state_save", "verify_state_save"),
        ("trim_percentage=50", "trim_percentage, which discards data"),
        ("log_avg_msec=5", "log_avg_msec"),
        ("include=/etc/shadow", "include, which reads other files"),
        ("include /etc/shadow", "include, which reads other files"),
        ("opendir=/home", "opendir"),
        ("ioengine=external:/tmp/evil.so", "ioengine"),
        ("ioengine=/tmp/evil.so", "ioengine"),
        ("ioengine=net", "ioengine"),
        ("rw=trim", "discards data"),
        ("rw=randtrim", "discards data"),
        ("rw=trimwrite", "discards data"),
        ("rw=readwrite", "rw that is not one of"),
        ("bs=`reboot`", "bs that is not one size"),
        ("bs=4k,8k", "bs that is not one size"),
        ("bs=512", "bs that is not one size"),
        ("bs=0", "bs that is not one size"),
        ("bs=1g", "bs that is not one size"),
        ("numjobs=$ncpus", "numjobs that is not"),
        ("numjobs=${HOME}", "numjobs that is not"),
        ("numjobs=1000", "load.streams"),
        ("rwmixread=101", "load.read_percent"),
        ("rwmixwrite=101", "load.read_percent"),
        ("iodepth=-1\nioengine=libaio\ndirect=1", "iodepth that is not"),
        ("thinktime=5", "thinktime, which autotune cannot carry over"),
        ("--output=/etc/passwd", "no option of fio"),
        ("\x1b[2J=1", "no option of fio"),
        ("rate_iops=50", "rate_iops"),
    ],
)
def test_what_has_no_place_here_is_refused_by_name(where: str, option: str, reason: str) -> None:
    text = f"[{where}]\n{option}\n[last]\nfsync=1\n"
    with pytest.raises(UsageError) as caught:
        parse_fio_job(text, "evil.fio")
    message = str(caught.value)
    assert reason in message
    assert message.count("\n") == 0
    assert message.endswith(".")
    assert message.isprintable()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no job section"),
        ("; nothing\n[global]\nrw=read", "no job section"),
        ("rw=read\n[job]", "before its first"),
        ("include other.fio\n[job]", "include"),
        ("[job\nrw=read", "not closed"),
        ("[]", "not closed"),
        ("[job]\n" + "x" * 5000, "longer than"),
        ("[a]\n" * 40, "more than 15"),
        ("[a]\nrw=randread\nrate_iops=5", "every job has rate_iops"),
        ("[a]\n[b]\nrate_iops=5", "only a random job"),
        ("[a]\n[b]\nrw=randread\nrate_iops=5,5", "rate_iops that is not"),
        ("[a]\n[b]\nrw=randread\nrate_iops=0", "rate_iops"),
        ("\0\ufffd[", "before its first"),
    ],
)
def test_a_file_that_is_no_job_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_fio_job(text, "broken.fio")


def test_a_section_name_can_be_anything(tmp_path: Path) -> None:
    names = ["../../etc", "; [x", "$(reboot)", "idle", "ÄÖ", "a" * 200]
    phases = parse_fio_job("\n".join(f"[{name}]" for name in names[2:]), "x").phases
    assert [phase.name for phase in phases] == ["reboot", "idle-2", "job", "a" * 24]


def test_a_job_file_is_known_by_its_suffix_and_held_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    assert load_workload(str(path)).name == "fio-job"
    path.write_text("[job]\n" + "#\n" * MOST_TYPED_BYTES)
    with pytest.raises(UsageError, match="larger"):
        load_workload(str(path))
