"""What a guard said of the users' p99, beside what fio has seen itself."""

import json

HALF_MINUTE_S = 30.0
ENOUGH = 100


def windows(log: str) -> list[dict[str, float]]:
    """The measurements of a guard with `--json`, from the lines of its log."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [
        line
        for line in lines
        if line["kind"] == "window" and line["p99_ns"] and line["samples"] >= ENOUGH
    ]


def beside(log: str, latencies: str) -> list[tuple[float, float]]:
    """The guard's p99 and fio's own of the same half minutes, in ns. `latencies` is fio's log of
    each request: when it ended (ms since the epoch), how long it took (ns)."""
    requests = [
        (int(words[0]) / 1000, float(words[1]))
        for words in (line.split(", ") for line in latencies.splitlines())
    ]
    pairs = []
    for window in windows(log):
        end_s = window["time_s"]
        own = sorted(took for at, took in requests if end_s - HALF_MINUTE_S < at <= end_s)
        if len(own) >= ENOUGH:
            pairs.append((window["p99_ns"], own[len(own) * 99 // 100]))
    return pairs
