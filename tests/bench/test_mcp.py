"""What `lab.bench.mcp` asks, and what it makes of the times."""

from lab.bench.client import BenchCaller
from lab.bench.mcp import A2A, MCP_2025, MCP_2026, WAYS, report, request_of

CALLER = BenchCaller("/api/a2a/v1/agents/owner/helper", "Authorization: Bearer t\r\nA2A-Version: 1.0\r\n")


def test_each_way_asks_the_same_agent_the_same() -> None:
    asked = {way: request_of(way, CALLER, "hello") for way in WAYS}
    assert asked[A2A][0] == CALLER.path
    for way in (MCP_2025, MCP_2026):
        path, headers, body = asked[way]
        assert path == "/mcp"
        assert "Authorization: Bearer t\r\n" in headers
        assert body["params"]["arguments"] == {"handle": "owner/helper", "message": "hello"}
        assert ("_meta" in body["params"]) is (way == MCP_2026)


def test_what_a_way_adds_is_compared_within_a_round() -> None:
    times = {A2A: [1.0, 5.0, 2.0], MCP_2025: [4.0, 7.0, 5.0], MCP_2026: [2.0, 6.0, 3.0]}
    goals = [goal[-2:] for goal in report({"embedded": times}, 3).goals]
    assert goals == [["3.00", "NOT MET"], ["1.00", "met"]]
