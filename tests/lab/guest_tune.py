"""Runs on a bare RAID6 in the lab; `test_run.py` runs this there."""

from pathlib import Path

from guest import WRITE, autotune_json, knob_files, running

RUN = ("run", "/dev/md0", "--destructive", "/dev/md0", "--ram-budget", "96MiB")


def test_a_run_finds_and_confirms_a_better_setting_and_puts_the_originals_back(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    workload = tmp_path / "write.toml"
    workload.write_text(WRITE)
    before = knob_files()
    # Of one knob, so that a noisy machine cannot make the search miss what it has to find.
    knob = ("--knobs", "stripe_cache_size")
    options = ("--workload", workload, *knob, "--trials", 4, "--time", "4min")
    done = autotune_json(*RUN, *options, state=state)
    assert knob_files() == before
    assert done["adopt"], done
    # What is begun then is ended.
    assert done["seconds"] < 1.2 * 240
    assert done["gain"]["low"] > 1
    assert done["winner"]["stripe_cache_size"] > 256
    assert done["profile"]["ram_bytes"] <= 96 << 20
    assert not running("fio")
    # The kernel grows the cache of the original settings in these seconds, so it says less.
    assert done["long_load"]["figures"]["write.throughput"]["ratio"] > 0.97, done["long_load"]
    assert done["profile"]["evidence"]["long"]["write.throughput"]["seconds"] == 10

    spent = done["spent"]
    overhead = spent["overhead_seconds"]
    assert 0 < spent["measured_share"] < 1
    assert min(overhead["warm-up"], overhead["letting loads settle"], spent["measured_seconds"]) > 1
    # With what came before the first measurement, nothing of the run is missing.
    assert sum(overhead.values()) + spent["measured_seconds"] >= done["seconds"]

    trials = autotune_json("history", 1, state=state)["trials"]
    roles = [trial["role"] for trial in trials]
    assert roles[:2] == ["baseline", "baseline"]
    assert all(trial["effective"] == trial["requested"] for trial in trials)
    rates: dict[str, list[float]] = {role: [] for role in roles}
    for trial in trials:
        if "write.throughput" in trial["figures"]:
            rates[trial["role"]].append(trial["figures"]["write.throughput"]["value"])
    proofs: list[tuple[object, list[str]]] = []
    for trial in trials:
        if trial["role"] == "confirm-winner" and trial["requested"] not in [s for s, _ in proofs]:
            proofs.append((trial["requested"], []))
        if trial["role"].startswith("confirm"):
            proofs[-1][1].append(trial["role"])
    # What promised more, once one is kept, has a proof of its own.
    assert len(proofs) == 1 + len(done["refused"])
    sides = ("winner", "baseline", "baseline", "winner") * 2
    for _, proof in proofs:
        # It ends as soon as it is clear, after a pair or more.
        assert len(proof) in (2, 4, 6, 8)
        assert proof == [f"confirm-{side}" for side in sides[: len(proof)]]
    # A large effect: 4096 stripes against 256 make this load 1.6 times as fast on these disks.
    assert sum(rates["confirm-winner"]) > 1.15 * sum(rates["confirm-baseline"])
