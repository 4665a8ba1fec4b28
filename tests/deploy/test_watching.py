"""The view of operators on a hub: figures, spans and logs, and in none of them what was said, or a secret."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lab import ROOT
from lab.agents import Echo, Stall, online
from lab.callers import (
    bearer,
    call,
    envelope,
    failed_text,
    open_stream,
    question,
    reply_text,
    rpc_path,
    send,
    web,
)
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage, hub_env
from lab.waiting import eventually
from tests.deploy.collector import Collector, Span, collecting

METRICS_TOKEN = "canary-metrics-4c1f0aa2"
QUESTION, REPLY = "canary-question-81b2", "canary-question-81b2"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = "00-5bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b7-00"


@dataclass(frozen=True)
class Watched:
    hub: HubProcess
    collector: Collector


@pytest.fixture(scope="module")
def watched(make_storage: MakeStorage) -> Iterator[Watched]:
    with collecting() as collector:
        env = {
            "METRICS_TOKEN": METRICS_TOKEN,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": 200,
        }
        hub = HubProcess.start(
            make_storage("embedded"), LOG_FORMAT="json", LOG_LEVEL="DEBUG", REPLY_WAIT_S=2, **env
        )
        yield Watched(hub, collector)
        hub.stop()


async def traced_ask(hub: HubProcess, handle: str, traceparent: str) -> None:
    async with web(hub.url) as client:
        headers = bearer(hub.mint("alice", "session")) | {"traceparent": traceparent}
        body = envelope("SendMessage", question(QUESTION))
        assert (await client.post(rpc_path(handle), json=body, headers=headers)).status_code == 200


async def figures(hub: HubProcess) -> dict[str, float]:
    """Every sample of /metrics by its name and labels."""
    async with web(hub.url) as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[sample.name + "".join(f" {value}" for value in sample.labels.values())] = sample.value
    return found


async def test_asks_are_counted_by_how_they_ended(watched: Watched) -> None:
    hub, token = watched.hub, watched.hub.mint("alice", "session")
    before = await figures(hub)
    async with online(hub, Echo) as agent, online(hub, Stall) as silent:
        assert reply_text(await send(hub.url, agent.handle, QUESTION, token))
        await send(hub.url, silent.handle, QUESTION, token)
        async with open_stream(hub.url, silent.handle, QUESTION, token):
            during = await figures(hub)
        assert (during["clawbridge_agent_sockets"], during["clawbridge_streams"]) == (2, 1)
        assert during["clawbridge_process_turns"] >= 1

    async def is_refused() -> bool:
        task = await send(hub.url, agent.handle, QUESTION, token)
        denied = (await figures(hub)).get("clawbridge_asks_total denied offline", 0)
        return failed_text(task) == "agent channel offline" and denied > 0

    async def was_swept() -> bool:
        return (await figures(hub))["clawbridge_sweep_age_seconds"] < 60

    await eventually(is_refused, "the hub knows that they left")
    await eventually(was_swept, "the first sweep is noted")
    after = await figures(hub)

    def grew(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    assert grew("clawbridge_asks_total completed ") == 1
    assert grew("clawbridge_asks_total failed timeout") >= 1
    assert grew("clawbridge_asks_total denied offline") == 1
    assert grew("clawbridge_turn_seconds_count") >= 2
    assert grew("clawbridge_turn_seconds_bucket +Inf") == grew("clawbridge_turn_seconds_count")
    assert grew("clawbridge_ledger_batch_size_count") > 3
    assert after["clawbridge_database_up"] == 1
    assert after["clawbridge_deliveries_pending webhooks"] == 0
    assert after["clawbridge_deliveries_overdue_seconds pushes"] == 0
    assert after["clawbridge_processes"] == 1
    assert after["process_resident_memory_bytes"] > 10_000_000


async def test_no_label_names_a_tenant(watched: Watched) -> None:
    async with online(watched.hub, Echo) as agent:
        await send(watched.hub.url, agent.handle, QUESTION, watched.hub.mint("alice", "session"))
        names = " ".join(await figures(watched.hub))
    for word in ("alice", "owner", agent.handle, QUESTION, METRICS_TOKEN):
        assert word not in names


ASKERS: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"Host": "localhost:1"}, 200),
    ({"Host": "evil.example"}, 404),
    ({"X-Forwarded-For": "127.0.0.1"}, 404),
    ({"Forwarded": "for=127.0.0.1"}, 404),
    ({"X-Forwarded-For": "203.0.113.1", "Authorization": f"Bearer {METRICS_TOKEN}"}, 200),
    ({"X-Forwarded-For": "203.0.113.1", "Authorization": f"Bearer {METRICS_TOKEN}x"}, 404),
    ({"X-Forwarded-For": "203.0.113.1", "Authorization": "Bearer"}, 404),
]


async def test_figures_are_for_this_machine_or_the_token(watched: Watched) -> None:
    async with web(watched.hub.url) as client:
        for headers, status in ASKERS:
            assert (await client.get("/metrics", headers=headers)).status_code == status, headers
            posted = await client.post("/metrics", headers=headers)
            assert posted.status_code == (405 if status == 200 else 404), headers
            head = await client.head("/metrics", headers=headers)
            assert (head.status_code, head.content) == (status, b""), headers


async def spans_of(watched: Watched, trace: str, count: int) -> list[Span]:
    """The spans of a trace, once so many have arrived."""

    async def arrived() -> list[Span] | None:
        found = [one for one in watched.collector.spans if one.trace == trace]
        return found if len(found) == count else None

    return await eventually(arrived, f"{count} spans")


async def test_an_ask_is_four_spans_below_its_callers(watched: Watched) -> None:
    async with online(watched.hub, Echo) as agent:
        await traced_ask(watched.hub, agent.handle, UNSAMPLED)
        await traced_ask(watched.hub, agent.handle, PARENT)
        prompt = agent.prompts[-1]
    spans = {one.name: one for one in await spans_of(watched, PARENT[3:35], 4)}
    ask = spans.pop("ask")
    assert ask.parent == PARENT[36:52]
    assert f"00-{ask.trace}-{ask.span}-01" == prompt["traceparent"]
    assert set(spans) == {"admission", "delivery", "settle"}
    assert {one.parent for one in spans.values()} == {ask.span}
    assert ask.attributes["clawbridge.outcome"] == "completed"
    assert all(ask.began_ns <= one.began_ns + 2_000_000 for one in spans.values())
    assert all(one.ended_ns <= ask.ended_ns for one in spans.values())
    assert not [one for one in watched.collector.spans if one.trace == UNSAMPLED[3:35]]


async def test_a_refused_ask_is_an_error_and_a_trace_of_its_own(watched: Watched) -> None:
    bob = watched.hub.mint("bob", "session")
    async with online(watched.hub, Echo, agent={"dailyBudgetQueries": 0}) as agent:
        answer = await call(watched.hub.url, agent.handle, bob, "SendMessage", question("q"))
    trace = answer.headers["traceparent"][3:35]
    admission, ask = sorted(await spans_of(watched, trace, 2), key=lambda one: one.name)
    assert (ask.parent, admission.parent) == ("", ask.span)
    assert ask.is_error
    assert ask.attributes["clawbridge.reason"] == "budget_exhausted"


async def test_what_was_said_and_secrets_are_in_none_of_it(watched: Watched) -> None:
    hub = watched.hub
    tokens = [hub.mint("alice", "session"), hub.mint("owner", "channel")]
    async with online(hub, Echo) as agent, web(hub.url) as client:
        await traced_ask(hub, agent.handle, PARENT)
        body = envelope("SendMessage", question(QUESTION))
        for path in (rpc_path(agent.handle), "/api/v1/me", f"/api/v1/nowhere?token={tokens[0]}"):
            await client.post(path, content=f"{QUESTION}\0{{", headers=bearer(tokens[0]))
            await client.post(path, json=body, headers=bearer(tokens[0] + "x"))
    said = hub.programs[0].output
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert len(lines) > 20
    assert {"at", "level", "logger", "event"} <= lines[0].keys()
    assert [one for one in lines if one.get("trace_id") == PARENT[3:35]]
    everything = said + "".join(map(repr, watched.collector.bodies))
    for canary in (QUESTION, METRICS_TOKEN, *tokens):
        assert canary not in everything


def test_without_an_endpoint_no_exporter_is_imported(make_storage: MakeStorage) -> None:
    """redis-py imports OpenTelemetry's API where it is installed; the modules that make and send spans are not
    imported.
    """
    script = "import sys, hub.asgi; print(*sys.modules)"
    env = hub_env(dict(make_storage("embedded").env))
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    imported = set(shown.stdout.split())
    assert "hub.monitoring.ledger" in imported, shown.stderr
    assert not {"hub.monitoring.telemetry", "opentelemetry.exporter", "opentelemetry.sdk.trace.export"} & imported
