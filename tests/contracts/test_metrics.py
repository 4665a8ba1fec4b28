"""The figures of one process as Prometheus reads them: their names, types and labels are what operators query."""

from prometheus_client import generate_latest

from agnt.service.figures import AgntCounts
from hub.monitoring.ledger import Counts
from hub.monitoring.metrics import registry

EXPECTED = """\
# TYPE clawbridge_info gauge
clawbridge_info{version="1.2.3"} 1.0
# TYPE clawbridge_asks_total counter
clawbridge_asks_total{outcome="completed",reason=""} 1.0
clawbridge_asks_total{outcome="denied",reason="offline"} 1.0
# TYPE clawbridge_turn_seconds histogram
clawbridge_turn_seconds_bucket{le="0.025"} 0.0
clawbridge_turn_seconds_bucket{le="1.0"} 1.0
clawbridge_turn_seconds_bucket{le="+Inf"} 1.0
clawbridge_turn_seconds_count 1.0
clawbridge_turn_seconds_sum 0.04
# TYPE clawbridge_ledger_batch_size histogram
clawbridge_ledger_batch_size_bucket{le="2"} 0.0
clawbridge_ledger_batch_size_bucket{le="128"} 1.0
clawbridge_ledger_batch_size_count 1.0
clawbridge_ledger_batch_size_sum 3.0
# TYPE clawbridge_streams gauge
clawbridge_streams 7.0
# TYPE clawbridge_errors_total counter
# TYPE clawbridge_db_pool gauge
# TYPE a2a_requests_total counter
a2a_requests_total{intent="booking.confirm",status="ok",tier="pro"} 2.0
a2a_requests_total{intent="booking.confirm",status="duplicate",tier="pro"} 1.0
a2a_requests_total{intent="other",status="unknown_intent",tier="none"} 2.0
# TYPE a2a_metered_events_total counter
a2a_metered_events_total 2.0
# TYPE agnt_a2a_cb_opened_total counter
agnt_a2a_cb_opened_total 1.0
# TYPE agnt_a2a_venue_cb_opened_total counter
agnt_a2a_venue_cb_opened_total 2.0
"""


def count_envelopes(counts: AgntCounts) -> None:
    """Two confirms with their charges, one of them again, two intents that callers made up, three breakers."""
    for status in ("ok", "ok", "duplicate"):
        counts.note_envelope("booking.confirm", "pro", status)
    counts.metered_events += 2
    counts.note_envelope("a label that a caller made up", "", "unknown_intent")
    counts.note_envelope("another", "platinum", "unknown_intent")
    counts.breakers_opened += 1
    counts.venue_breakers_opened += 2


def test_figures_keep_their_names_types_and_labels() -> None:
    counts = Counts()
    counts.ended("completed", "", 40)
    counts.refused("denied", "offline")
    counts.batches.add(3)
    count_envelopes(counts.agnt)
    made = registry("1.2.3", counts, {"streams": ("Event streams open here.", lambda: 7)})
    lines = generate_latest(made).decode().splitlines()
    assert set(EXPECTED.splitlines()) <= set(lines)
    names = {line.split(" ")[2] for line in lines if line.startswith("# TYPE")}
    assert {name for name in names if not name.startswith("process_")} == {
        line.split(" ")[2] for line in EXPECTED.splitlines() if line.startswith("# TYPE")
    }
