"""Every query of the Grafana dashboard is about a metric that exists, by labels that it has."""

import json
import re
from collections.abc import Iterator

from lab import ROOT
from tests.deploy.files import DEPLOY, Json

DASHBOARD: Json = json.loads((DEPLOY / "grafana" / "clawbridge.json").read_text())
REFERENCE = (ROOT / "docs" / "reference" / "metrics.md").read_text()
NAME = r"(?:clawbridge|a2a|agnt)_\w+"
HISTOGRAMS = ("clawbridge_turn_seconds", "clawbridge_ledger_batch_size")
OF_PROMETHEUS = {"job", "instance", "le"}
OF_THE_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "up"}


def documented() -> dict[str, set[str]]:
    """The labels of each metric in the reference; a histogram by the names of its series."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(rf"`({NAME})(?:\{{([\w,]+)\}})?`", REFERENCE):
        series = [f"{name}_{one}" for one in ("bucket", "sum", "count")] if name in HISTOGRAMS else [name]
        found |= {one: set(filter(None, labels.split(","))) for one in series}
    return found


def queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_every_query_names_metrics_that_exist_and_their_labels() -> None:
    known = documented()
    for title, query in queries():
        names = set(re.findall(r"(\w+)\{", query))
        assert names, title
        assert names <= known.keys() | OF_THE_PROCESS, title
        selected = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", query))
        grouped = {one.strip() for by in re.findall(r"by \(([^)]*)\)", query) for one in by.split(",")}
        labels = set().union(*(known.get(name, set()) for name in names))
        assert selected | grouped <= labels | OF_PROMETHEUS, title


def test_every_metric_has_its_panel() -> None:
    shown = {name for _, query in queries() for name in re.findall(NAME, query)}
    without_parts = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    assert without_parts == set(re.findall(rf"`({NAME})", REFERENCE))


def test_panels_use_the_chosen_source_and_do_not_overlap() -> None:
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "job"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}"
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
