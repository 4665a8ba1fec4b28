"""A relay is transparent: a caller sees the artifacts that the remote server shows when it is asked directly."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab.callers import TLS, bearer, rpc_path, send
from lab.hub_process import HubProcess
from tests.remote.scripts import WAYS, Seen, Way, hear, play, scripted_server
from tests.remote.servers import Json

STREAMING = Way("1.0", "JSONRPC", True)
CALLERS = [STREAMING, Way("1.0", "JSONRPC", False), Way("1.0", "HTTP+JSON", True)]
EXAMPLES = [pytest.param(12, id="some"), pytest.param(80, id="many", marks=pytest.mark.deep)]
pytestmark = pytest.mark.parametrize("near", ["embedded"], indirect=True)
OLDER = [Way("0.3", "JSONRPC", True), Way("0.3", "JSONRPC", False)]


@dataclass(frozen=True)
class Relay:
    """A hub that publishes one remote server once for each way to call it."""

    runner: asyncio.Runner
    hub: HubProcess
    far_url: str

    def both(self, way: Way, turns: list[Json], caller: Way = STREAMING) -> tuple[Seen, Seen]:
        """The view of a caller on the same turns: directly, and through the hub."""

        async def ask() -> tuple[Seen, Seen]:
            return await asyncio.gather(
                play(way.card(f"{self.far_url}/{way.name}/a2a"), turns),
                play(caller.card(self.hub.url + rpc_path(handle(way))), turns, token=self.token),
            )

        return self.runner.run(ask())

    def both_hear(self, way: Way, message: Json, caller: Way) -> tuple[Json, Json]:
        """The message that answers a caller: directly, and through the hub."""

        async def ask() -> tuple[Json, Json]:
            return await asyncio.gather(
                hear(way.card(f"{self.far_url}/{way.name}/a2a"), message),
                hear(caller.card(self.hub.url + rpc_path(handle(way))), message, token=self.token),
            )

        return self.runner.run(ask())

    def by_hub_dialect(self, way: Way, turn: Json) -> Json:
        """The task of one turn in the hub's own dialect."""
        return self.runner.run(send(self.hub.url, handle(way), json.dumps(turn), self.token))

    def by_older_dialect(self, way: Way, turns: list[Json]) -> Seen:
        """The view of a caller of A2A 0.3."""
        card = Way("0.3", "JSONRPC", True).card(self.hub.url + rpc_path(handle(way)))
        return self.runner.run(play(card, turns, token=self.token))

    @property
    def token(self) -> str:
        return self.hub.mint("alice", "session")


@pytest.fixture(scope="module")
def relay(near: HubProcess) -> Iterator[Relay]:
    """One server and one hub for all tests; the server runs while a test waits for an answer."""
    with asyncio.Runner() as runner:
        server = scripted_server()
        relay = Relay(runner, near, runner.run(server.__aenter__()))
        for way in WAYS:
            runner.run(publish(relay, way))
        yield relay
        runner.run(server.__aexit__(None, None, None))


async def publish(relay: Relay, way: Way) -> None:
    """The remote server as an agent of the owner's, called in that way."""
    place = {"cardUrl": f"{relay.far_url}/{way.name}"}
    body = {"name": "Far", "slug": slug(way), "status": "published", "remote": place}
    headers = bearer(relay.hub.mint("relayed", "session"))
    async with httpx.AsyncClient(base_url=relay.hub.url, trust_env=False, verify=TLS, timeout=30) as http:
        made = await http.post("/api/v1/agents", json=body, headers=headers)
    assert made.status_code == 201, made.text


def slug(way: Way) -> str:
    return way.name.replace(".", "-")


def handle(way: Way) -> str:
    return f"relayed/{slug(way)}"


def update(artifact_id: str, *parts: Json, append: bool = False, last: bool = False, **more: Any) -> Json:
    """A TaskArtifactUpdateEvent of a script."""
    artifact = {"artifactId": artifact_id, "parts": list(parts), **more}
    return {"artifact": artifact, "append": append, "lastChunk": last}


def text(words: str, **more: Any) -> Json:
    return {"text": words, **more}


FILE = {"raw": "YWJj", "filename": "a.bin", "mediaType": "application/octet-stream"}
MIXED: Json = {
    "parts": [text("a ", metadata={"n": 1.0}), {"data": {"k": 1.0}, "metadata": {"m": "d"}}, text("b"), FILE],
    "metadata": {"m": "whole"},
    "extensions": ["https://extensions.example/x"],
}
IDS = st.sampled_from(["a", "b", "plan", "reply-1", "an odd/id: ✓", "x" * 100])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab✓\n", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("kl", max_size=2), inner, max_size=2),
    max_leaves=4,
)
METADATA = st.dictionaries(st.sampled_from("mn"), JSON, min_size=1, max_size=2)
PARTS = st.one_of(
    st.builds(text, st.sampled_from(["", "one ", "two\n", "✓"])),
    st.builds(text, st.just("{}"), mediaType=st.just("application/json")),
    st.builds(text, st.just("noted"), metadata=METADATA),
    st.builds(lambda data: {"data": data}, st.dictionaries(st.sampled_from("kl"), JSON, max_size=2) | JSON),
    st.just(FILE),
    st.just({"url": "https://files.example/a", "mediaType": "image/png"}),
)
NAMES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["n", "named " * 60]),
        "description": st.just("d"),
        "metadata": METADATA,
        "extensions": st.just(["https://extensions.example/x"]),
    },
)


@st.composite
def scripts(draw: st.DrawFn) -> list[Json]:
    """Turns of one task that create, replace and append to artifacts, interleaved."""
    known: set[str] = set()
    turns: list[Json] = []
    for asks in draw(st.sampled_from([[False], [True, False]])):
        events = []
        for artifact_id in draw(st.lists(IDS, max_size=6)):
            append = artifact_id in known and draw(st.booleans())
            known.add(artifact_id)
            parts = draw(st.lists(PARTS, min_size=1, max_size=3))
            events.append(update(artifact_id, *parts, append=append, last=draw(st.booleans()), **draw(NAMES)))
        turns.append(
            {"events": events, "asks": asks, "words": draw(st.sampled_from(["", "said"])) or asks * "which?"}
        )
    return turns


@pytest.mark.parametrize("examples", EXAMPLES)
def test_any_sequence_of_artifacts_is_the_same_through_the_hub(relay: Relay, examples: int) -> None:
    @settings(max_examples=examples)
    @given(turns=scripts(), way=st.sampled_from(WAYS), caller=st.sampled_from(CALLERS))
    def is_same(turns: list[Json], way: Way, caller: Way) -> None:
        check_same(way, caller, *relay.both(way, turns, caller))

    is_same()


def check_same(way: Way, caller: Way, direct: Seen, through: Seen) -> None:
    assert through.artifacts == direct.artifacts
    assert through.streamed == direct.artifacts
    assert (through.stored.status.state, through.words) == (direct.stored.status.state, direct.words)
    if way.streams and caller.streams:
        assert through.updates == direct.updates


MESSAGES = st.fixed_dictionaries(
    {"parts": st.lists(PARTS, min_size=1, max_size=4)},
    optional={"metadata": METADATA, "extensions": st.just(["https://extensions.example/x"])},
)


@pytest.mark.parametrize("examples", EXAMPLES)
def test_any_message_is_the_same_through_the_hub(relay: Relay, examples: int) -> None:
    @settings(max_examples=examples)
    @given(message=MESSAGES, way=st.sampled_from(WAYS), caller=st.sampled_from(CALLERS + OLDER))
    @example(MIXED, STREAMING, STREAMING)
    @example(MIXED, STREAMING, OLDER[0])
    @example(MIXED, WAYS[-1], OLDER[1])
    def is_same(message: Json, way: Way, caller: Way) -> None:
        if caller in OLDER:
            message = {**message, "parts": [as_older(one) for one in message["parts"]]}
        direct, through = relay.both_hear(way, message, caller)
        assert through == direct

    is_same()


def as_older(part: Json) -> Json:
    """A part as a caller of 0.3 sees it: the text has no media type."""
    return {name: value for name, value in part.items() if name != "mediaType" or "raw" in part or "url" in part}


def test_an_older_caller_sees_a_message_with_its_files(relay: Relay) -> None:
    for way, caller in zip(WAYS[:2], OLDER, strict=True):
        for message in (MIXED, {"parts": [FILE]}):
            direct, through = relay.both_hear(way, message, caller)
            assert through == direct


def test_a_message_that_is_shown_as_a_task_keeps_all_its_parts(relay: Relay) -> None:
    assert said(relay.by_hub_dialect(STREAMING, {"message": MIXED})) == ["a b"]


TWO_PLANS = [
    {"events": [update("plan", {"data": {"steps": ["v1"]}})], "asks": True, "words": "good?"},
    {"events": [update("plan", {"data": {"steps": ["v2"]}}, last=True)]},
]
SCRIPTS: dict[str, list[Json]] = {
    "a plan of two turns": TWO_PLANS,
    "text of two turns": [
        {"events": [update("log", text("one "))], "asks": True, "words": "on?"},
        {"events": [update("log", text("two"), append=True)]},
    ],
    "interleaved texts": [
        {
            "events": [
                update("a", text("a1 "), name="first"),
                update("b", text("b1 "), name="second"),
                update("a", text("a2"), append=True),
                update("b", text("b2"), append=True),
            ]
        }
    ],
    "text, data, text": [
        {
            "events": [
                update("a", text("x"), metadata={"m": "n"}),
                update("a", {"data": [1]}, text("y"), append=True),
            ]
        }
    ],
    "a closing event without parts": [{"events": [update("a", text("x")), update("a", append=True, last=True)]}],
    "a whole after its pieces": [
        {
            "events": [
                update("a", text("x"), name="n"),
                update("a", text("y"), append=True),
                update("a", text("x"), text("y"), last=True, name="n"),
                update("a", text("z"), append=True),
            ]
        }
    ],
    "no parts": [{"events": [update("a"), update("b", text("x"))]}],
    "words alone": [{"events": [], "words": "done"}],
}


# What ways to call a server can differ in; the others are the same events by any way.
OF_EVERY_WAY = ("a plan of two turns", "text of two turns", "interleaved texts", "text, data, text")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_script_is_the_same_through_the_hub(relay: Relay, way: Way, subtests: pytest.Subtests) -> None:
    for name in SCRIPTS if way.binding == "JSONRPC" and way.streams else OF_EVERY_WAY:
        with subtests.test(script=name):
            check_same(way, STREAMING, *relay.both(way, SCRIPTS[name]))


def test_a_word_at_a_time_comes_in_fewer_updates_of_the_same_parts(relay: Relay) -> None:
    words = [update("a", text(f"{n} "), append=n > 0) for n in range(700)]
    direct, through = relay.both(STREAMING, [{"events": words}])
    assert through.artifacts == through.streamed == direct.artifacts
    assert 500 < len(through.updates) < 700


def test_the_hubs_own_dialect_shows_the_texts_one_after_another(relay: Relay) -> None:
    [turn] = SCRIPTS["interleaved texts"]
    for way in WAYS:
        assert said(relay.by_hub_dialect(way, turn)) == ["a1 a2\n\nb1 b2"]
        assert said(relay.by_hub_dialect(way, {"events": [update("a", text("hi"))]})) == ["hi"]
        assert said(relay.by_hub_dialect(way, {"events": [], "words": "done"})) == ["done"]
        both = {"events": [update("a", text("hi"))], "words": "done"}
        assert said(relay.by_hub_dialect(way, both)) == ["done", "hi"]


def said(task: Json) -> list[str]:
    """The words of the agent in a task of the hub's own dialect."""
    assert task["status"].keys() == {"state", "timestamp"}
    spoken = [one for one in task["history"] if one["role"] == "ROLE_AGENT"]
    return ["".join(part["text"] for part in one["parts"]) for one in spoken]


def test_older_callers_see_the_artifacts_and_their_text_once(relay: Relay) -> None:
    turns = SCRIPTS["interleaved texts"]
    for way in WAYS:
        seen = relay.by_older_dialect(way, turns)
        assert [(one["artifactId"], one["name"]) for one in seen.artifacts] == [("a", "first"), ("b", "second")]
        assert ["".join(part["text"] for part in one["parts"]) for one in seen.artifacts] == ["a1 a2", "b1 b2"]
        assert seen.words == ""
        plan = relay.by_older_dialect(way, TWO_PLANS)
        assert [one["parts"] for one in plan.artifacts] == [[{"data": {"steps": ["v2"]}}]]
        assert relay.by_older_dialect(way, [{"events": [], "words": "done"}]).words == "done"
