"""The figures of `/metrics`, in a registry of their own. No label names a tenant, an agent or a token."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.core.ledger.thread import Histogram
from agnt.service.figures import AgntCounts
from hub.logs import error_totals
from hub.monitoring.figures import Figure, pool_figures
from hub.monitoring.ledger import Counts

Gauges = Mapping[str, tuple[str, Callable[[], float]]]  # the help text of a gauge, and the function that reads it


class ProcessFigures(Collector):
    """The counts of asks and errors of this process, and its database pool; reading them does no I/O.

    The library's `Counter` and `Histogram` are not used: they cost an ask 24 calls more, and a finalizer could ask
    for their lock again in a thread whose log handler holds it (docs/adr/0093).
    """

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families; the Prometheus client calls this."""
        asks = CounterMetricFamily("clawbridge_asks", "Asks of this process.", labels=["outcome", "reason"])
        for (outcome, reason), count in list(self._counts.asks.items()):
            asks.add_metric([outcome, reason], count)
        yield asks
        yield _histogram(
            "clawbridge_turn_seconds", "From admission to settling, the agent's own time included.",
            self._counts.latency_s,
        )  # fmt: skip
        yield _histogram(
            "clawbridge_ledger_batch_size", "Pieces of work the ledger took at once.", self._counts.batches
        )
        errors = CounterMetricFamily("clawbridge_errors", "Log records of ERROR and above.", labels=["event"])
        for event, count in error_totals():
            errors.add_metric([event], count)
        yield errors
        yield _labelled("clawbridge_db_pool", "Connections of this process.", "state", pool_figures())
        yield from _agnt_families(self._counts.agnt)


def registry(version: str, counts: Counts, gauges: Gauges) -> CollectorRegistry:
    """The registry of one process, with the figures of the operating system (`process_…`)."""
    made = CollectorRegistry(auto_describe=False)
    Gauge("clawbridge_info", "The release.", ["version"], registry=made).labels(version).set(1)
    made.register(ProcessFigures(counts))
    for name, (text, read) in gauges.items():
        Gauge(f"clawbridge_{name}", text, registry=made).set_function(read)
    ProcessCollector(registry=made)
    return made


class HubWide(Collector):
    """The figures in the database; the same from every process. A gauge shows when these figures are missing."""

    def __init__(self, found: Sequence[Figure] | None) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families; the Prometheus client calls this."""
        up = "Whether the database answered in time."
        yield GaugeMetricFamily("clawbridge_database_up", up, value=float(self._found is not None))
        for one in self._found or ():
            if one.label:
                yield _labelled(one.name, one.text, one.label, one.by_label)
            else:
                yield GaugeMetricFamily(one.name, one.text, value=one.number)


def _agnt_families(counts: AgntCounts) -> Iterator[Metric]:
    """The counters of AGNT, by the names that its specification gives them."""
    requests = CounterMetricFamily(
        "a2a_requests", "Envelopes of this process.", labels=["intent", "tier", "status"]
    )
    for labels, count in list(counts.requests.items()):
        requests.add_metric(labels, count)
    yield requests
    yield CounterMetricFamily("a2a_metered_events", "Charges of this process.", value=counts.metered_events)
    opened = "Times that a breaker of a {} was opened by this process."
    yield CounterMetricFamily("agnt_a2a_cb_opened", opened.format("network"), value=counts.breakers_opened)
    yield CounterMetricFamily(
        "agnt_a2a_venue_cb_opened", opened.format("venue"), value=counts.venue_breakers_opened
    )


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _histogram(name: str, text: str, values: Histogram) -> Metric:
    return HistogramMetricFamily(name, text, buckets=values.buckets(), sum_value=values.sum)
