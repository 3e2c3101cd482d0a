"""What lies in examples/ for Prometheus and Grafana, run by a real Prometheus over real metrics."""

import contextlib
import dataclasses
import http.server
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from some_windows import FIRST, some_windows

from autotune.checking import stored
from autotune.checking.metrics import CheckMetricsFile
from autotune.checking.record import CheckHistory, CheckRecord, Part
from autotune.guard.metrics import GuardMetricsFile
from autotune.service.metrics import ArrayMetrics, write_metrics
from autotune.service.metrics_files import metrics_file
from autotune.system.array import Array, find_array

EXAMPLES = Path(__file__).parents[3] / "examples"
ALERTS = sorted((Path(__file__).parents[1] / "alerts").glob("*_test.yml"))
READY_S = 120
AT = datetime(2026, 1, 1, tzinfo=UTC)
ARRAY = ArrayMetrics(
    "/dev/md0", "u", "md0-run3", True, 1.7e9, 1.4, (1.3, 1.5), "better", 0.97,
    (("resync.p99", 0.02),), (("resync.p99", 0.05),),
)  # fmt: skip


def program(name: str) -> str:
    """Where it is; the tests' packages bring it, so nothing is passed over without."""
    found = shutil.which(name)
    assert found is not None, f"{name} is missing: `make setup test` installs it"
    return found


def textfiles(folder: Path, array: Array) -> Path:
    """The files that re-tuning, a guard and a check write, as node_exporter would find them."""
    write_metrics(folder / "autotune.prom", [ARRAY, ArrayMetrics("/dev/md1", "v", "", False)])
    metrics = GuardMetricsFile(folder / "autotune.prom", array, 80e6, pytest.fail)
    metrics.window(next(some_windows(1, finish_s=FIRST.time_s + 9e4, needed_kib=3000.0)))
    assert metrics_file(folder / "autotune.prom", "guard", array.device).exists()
    part = Part(start=0, end=5000, began=AT, mismatches=136)
    record = CheckRecord(began=AT, array="raid6", members=(), size=10_000, parts=(part,))
    whole = record.model_copy(update={"parts": (Part(start=0, end=10_000, began=AT),), "ended": AT})
    stored.save(CheckHistory(device=array.device, checks=(whole, record)), folder / "checks.json")
    checks = CheckMetricsFile(folder / "autotune.prom", array, pytest.fail)
    checks.write(folder / "checks.json", active=True, p99_ns=2e7)
    assert metrics_file(folder / "autotune.prom", "check", array.device).exists()
    return folder


@contextlib.contextmanager
def exporter(folder: Path) -> Iterator[int]:
    """Serves the files of a folder as a target, on a port of 127.0.0.1."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"".join(file.read_bytes() for file in sorted(folder.glob("*.prom")))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Prometheus:
    """A server that scrapes one target every second."""

    def __init__(self, folder: Path, target: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
            ],
        }
        # JSON is YAML.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        deadline = time.monotonic() + READY_S
        while not self._is_up():
            assert self._process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)

    def _is_up(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self.query("autotune_guard_active"))
        return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self._ask("query", query=expression)["result"])

    def label_values(self, series: str, label: str) -> list[str]:
        return list(self._ask(f"label/{label}/values", **{"match[]": series}))

    def _ask(self, what: str, **words: str) -> Any:
        asked = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise OSError("not ready yet") from None
            raise AssertionError(f"{words}: {error.read().decode()}") from None

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    metrics = folder / "metrics"
    metrics.mkdir()
    fake_sysfs.raid6(folder / "machine")
    array = find_array("md0", folder / "machine")
    with exporter(textfiles(metrics, array)) as port:
        server = Prometheus(folder, port)
        try:
            yield server
        finally:
            server.end()


def panels() -> list[dict[str, Any]]:
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def asked(expression: str, hosts: str = ".*") -> str:
    return expression.replace("$host", hosts)


def test_every_query_of_the_dashboard_gives_data(prometheus: Prometheus) -> None:
    queries = [(panel["title"], t) for panel in panels() for t in panel["targets"]]
    assert len(queries) > 20
    for title, target in queries:
        found = prometheus.query(asked(target["expr"]))
        assert found, f"{title}: {target['expr']}"
        for name in re.findall(r"{{(\w+)}}", target["legendFormat"]):
            assert all(name in each["metric"] for each in found), f"{title} has no {name}"


def test_a_query_for_another_host_gives_none(prometheus: Prometheus) -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert not prometheus.query(asked(target["expr"], "elsewhere")), target["expr"]


def test_the_hosts_to_choose_from_are_those_there_are(prometheus: Prometheus) -> None:
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    (host,) = (v for v in dashboard["templating"]["list"] if v["name"] == "host")
    # Those that only guard or check, too.
    found = re.fullmatch(r"label_values\(({__name__=~\"autotune_.\*\"}), (\w+)\)", host["query"])
    assert found
    (instance,) = prometheus.label_values(*found.groups())
    assert instance.startswith("127.0.0.1:")


def test_the_dashboard_shows_every_metric(prometheus: Prometheus) -> None:
    shown = set(re.findall(r"autotune_\w+", json.dumps(panels())))
    there = prometheus.label_values('{__name__=~"autotune_.*"}', "__name__")
    assert shown == set(there)


def test_panels_have_places_of_their_own() -> None:
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def promtool(*words: str, given: str | None = None) -> str:
    done = subprocess.run(
        [program("promtool"), *words], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_alert_fires_in_its_time_and_not_before() -> None:
    said = promtool("check", "rules", str(EXAMPLES / "alerts.yml"))
    alerts = re.findall(r"- alert: (\w+)", (EXAMPLES / "alerts.yml").read_text())
    assert f"{len(alerts)} rules found" in said
    promtool("test", "rules", *map(str, ALERTS))
    text = "".join(file.read_text() for file in ALERTS)
    tested = re.findall(r"alertname: (\w+)\n +exp_alerts", text)
    assert set(tested) == set(alerts)


def test_the_alerts_are_about_metrics_that_there_are(prometheus: Prometheus) -> None:
    named = set(re.findall(r"autotune_\w+", (EXAMPLES / "alerts.yml").read_text()))
    assert named
    assert named <= set(prometheus.label_values('{__name__=~"autotune_.*"}', "__name__"))


def test_the_metrics_are_in_good_form(tmp_path: Path, prometheus: Prometheus) -> None:
    write_metrics(tmp_path / "a.prom", [ARRAY, dataclasses.replace(ARRAY, device="/dev/md1")])
    promtool("check", "metrics", given=(tmp_path / "a.prom").read_text())
