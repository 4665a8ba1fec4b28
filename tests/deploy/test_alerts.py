"""Every alarm is about a figure there is, and leads to a part of the runbook."""

import re

from lab import ROOT
from tests.deploy.files import document
from tests.repository.test_docs import anchors

RULES = document("prometheus/alerts.yaml")["groups"][0]["rules"]
NAME = r"\b(?:clawbridge|a2a|agnt)_\w+"
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text()


def test_every_alarm_is_about_a_figure_there_is() -> None:
    documented = set(re.findall(NAME, METRICS))
    for rule in RULES:
        used = set(re.findall(NAME, rule["expr"]))
        assert used <= documented, rule["alert"]
        assert used or "up{" in rule["expr"] or "process_" in rule["expr"], rule["alert"]


def test_every_alarm_leads_to_its_part_of_the_runbook() -> None:
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert anchor in anchors((ROOT / page).read_text()), rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_every_part_of_the_runbook_on_alarms_has_its_alarm() -> None:
    text = (ROOT / "docs" / "howto" / "runbook.md").read_text().partition("## When an alarm fires\n")[2]
    told = anchors(text.partition("\n## ")[0])
    assert told == {rule["annotations"]["runbook"].partition("#")[2] for rule in RULES}
