"""The agent frameworks whose remote-agent classes are driven, unmodified, and what their users get."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.callers import rpc_path
from tests.frameworks.scenarios import SCENARIOS, Scenario
from tests.sdks.clients import Run, run_python
from tests.sdks.environments import FRAMEWORKS
from tests.sdks.observations import Observation

PROGRAMS = Path(__file__).parent / "programs"
NOTHING = "nothing"
PACKAGES = {
    "adk": "google-adk",
    "strands": "strands-agents",
    "beeai": "beeai-framework",
}  # else as the environment


@dataclass(frozen=True)
class Fault:
    """The texts that the user sees in place of the right answer, a pattern for each question.

    `why`: the note of the page, with what helps. `helped_by`: the scenario of the program that tries what helps;
    empty when another row of the table tries it, or when the agent or the user has to write something else.
    """

    seen: tuple[str, ...]
    why: str
    helped_by: str = ""


@dataclass(frozen=True)
class Framework:
    """One way that a framework asks a remote agent.

    By the name of a scenario: `faults`, the wrong answers; `lacks`, why the framework does not offer this.
    """

    name: str
    environment: str
    uses: str
    scenario: str = "ask"
    options: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=lambda: NO_CANCEL)

    def __str__(self) -> str:
        return self.name

    @property
    def version(self) -> str:
        package = PACKAGES.get(self.environment, self.environment)
        found = re.search(rf"(?m)^{package}==(\S+)", FRAMEWORKS[self.environment].lock.read_text())
        assert found, f"{package} is not in the lock of {self.environment}"
        return found[1]

    @asynccontextmanager
    async def run(self, url: str, handle: str, token: str, scenario: Scenario) -> AsyncIterator[Run]:
        """Ask an agent, by its base address, in one session; leaving the block ends the program."""
        folder = await asyncio.to_thread(FRAMEWORKS[self.environment].ready)
        options = json.dumps({**self.options, "texts": scenario.texts})
        does = "cancel" if scenario.is_canceled else self.scenario
        arguments = [f"{url}{rpc_path(handle)}/", token, does, options]
        async with run_python(folder, PROGRAMS / f"with_{self.environment}.py", arguments) as run:
            yield run


def shown(sight: Observation) -> str:
    value = sight.value
    if sight.step == "raised":
        return f"raised {value['type']}: {value['message']}"
    asks = value.get("asks") or {}
    told = [value["text"], *map(str, asks.values()), *value.get("files", ()), value.get("error", "")]
    return "\n".join(filter(None, told)) or NOTHING


STOPPED = "Error: .* stopped waiting on unresolved long-running tool call.*"
NOT_A_TOOL = "ask_as_sub_agent"
OF_TOOLS = {
    "stream": Fault(
        ("a lifetime\n is\n a region",),
        "`AgentTool` puts each piece on a line: make the agent a sub-agent",
        NOT_A_TOOL,
    ),
    "input": Fault(
        (STOPPED, "echo: the second"), "`AgentTool` cannot ask its user: make the agent a sub-agent", NOT_A_TOOL
    ),
    "auth": Fault((STOPPED,), "`AgentTool` cannot ask its user: make the agent a sub-agent", NOT_A_TOOL),
    "data": Fault((NOTHING,), "`AgentTool` returns text alone: make the agent a sub-agent", NOT_A_TOOL),
    "file": Fault((NOTHING,), "`AgentTool` returns text alone: make the agent a sub-agent", NOT_A_TOOL),
    "several": Fault(("two",), "`AgentTool` returns the last artifact: make the agent a sub-agent", NOT_A_TOOL),
}
NO_CANCEL = {"cancel": "the framework's class cannot cancel a task"}
OF_STRANDS = {
    "input": Fault(
        (r"which one\?", "echo: the second"),
        "`A2AAgent` begins a new task and context with each question: repeat the first question in the second",
    ),
    "data": Fault((NOTHING,), "`A2AAgent` returns text alone: read `event` of `stream_async`", "ask_by_events"),
    "file": Fault((NOTHING,), "`A2AAgent` returns text alone: read `event` of `stream_async`", "ask_by_events"),
}
MESSAGES_ALONE = (
    "by JSON-RPC `RemoteAgent` reads only the messages of a Task, no artifact and no Message:"
    " leave `a2a_protocol` at its default"
)
OF_AGNO_BY_RPC = dict.fromkeys(("plain", "data", "file", "several"), Fault((NOTHING,), MESSAGES_ALONE)) | {
    "stream": Fault(("reading",), MESSAGES_ALONE),
    "input": Fault((r"which one\?", NOTHING), MESSAGES_ALONE),
    "turns": Fault((NOTHING, NOTHING), MESSAGES_ALONE),
}
OF_AGNO_STREAMING = {
    "file": Fault((r"left out: file f\.txt",), "`RemoteAgent` takes no files from a stream: ask without `stream`"),
}
OF_FASTA2A_STREAMING = {
    "token": Fault((NOTHING,), "`stream_message` does not look at the HTTP status: ask by `send_message`"),
}
OWN_PROTOCOL = (
    "`A2AClient` speaks a protocol of its own, `tasks/send` with `content` in place of `parts`, and shows the"
    ' hub\'s refusal as the answer: ask by `OpenAIA2AClient(api_key=token, model="agent/owner/slug")` with'
    " `OPENAI_BASE_URL` set to `/v1` of the hub"
)
REFUSED = r'.*"error":.*id is missing.*'
OF_PYTHON_A2A = {
    one.name: Fault(
        (r"Error: Failed to communicate with agent at .*",) if one.is_token_wrong else (REFUSED,) * len(one.texts),
        OWN_PROTOCOL,
        "ask_by_openai" if one.name == "plain" else "",
    )
    for one in SCENARIOS
    if not one.is_canceled
}
OF_BEEAI = {
    "several": Fault(
        ("two",),
        "`A2AAgent` returns the last artifact: read all messages that `A2AAgent` added to the memory",
        "ask_by_memory",
    ),
}
JOINED = "CrewAI joins the notes of an agent and the pieces of its reply with spaces: let the agent answer whole"
UNTOLD = (
    "CrewAI hides a request to sign in from its model: read `error` of the event `A2ADelegationCompletedEvent`"
)
WORDS_ALONE = "CrewAI reads only text: let the agent answer in words"
NO_OUTPUT = "raised ValueError: No valid task outputs available to create crew output."
OF_CREWAI = {
    "stream": Fault(("reading a lifetime  is  a region",), JOINED),
    "auth": Fault((NOTHING,), UNTOLD, "ask_by_events"),
    "data": Fault((NO_OUTPUT,), WORDS_ALONE),
    "file": Fault((NO_OUTPUT,), WORDS_ALONE),
}
OF_CREWAI_POLLING = OF_CREWAI | {
    "input": Fault(
        (r"which one\?", r"which one\? you said: the second"),
        "when polling, CrewAI puts the agent's last message before its artifacts: leave `updates` at its default",
    ),
}
NO_ARTIFACTS = (
    "CrewAI shows its model the messages of a task, no artifact: set `trust_remote_completion_status=True`"
)
OF_CREWAI_MODEL = OF_CREWAI | {
    "stream": Fault(("reading",), NO_ARTIFACTS),
    "input": Fault((r"which one\?", NOTHING), NO_ARTIFACTS),
    "data": Fault((NOTHING,), WORDS_ALONE),
    "file": Fault((NOTHING,), WORDS_ALONE),
    "several": Fault((NOTHING,), NO_ARTIFACTS),
}
TRUSTING = {"trust_remote_completion_status": True}
ALL = (
    Framework("ADK", "adk", "`RemoteA2aAgent`"),
    Framework(
        "ADK, streaming",
        "adk",
        "`RemoteA2aAgent` with a streaming `ClientFactory`",
        options={"streaming": True},
    ),
    Framework(
        "ADK, as a tool",
        "adk",
        "`AgentTool(RemoteA2aAgent)`",
        "ask_as_tool",
        {"streaming": True},
        OF_TOOLS,
    ),
    Framework("Strands", "strands", "`A2AAgent`", faults=OF_STRANDS),
    Framework("Agno", "agno", '`RemoteAgent(protocol="a2a")`'),
    Framework(
        "Agno, streaming",
        "agno",
        '`RemoteAgent(protocol="a2a")` with `stream=True`',
        options={"streaming": True},
        faults=OF_AGNO_STREAMING,
    ),
    Framework(
        "Agno, by JSON-RPC",
        "agno",
        '`RemoteAgent` with `a2a_protocol="json-rpc"`',
        options={"protocol": "json-rpc"},
        faults=OF_AGNO_BY_RPC,
    ),
    Framework(
        "fasta2a",
        "fasta2a",
        "`A2AClient(url).send_message`; `fetch_card=True` refuses what A2A 1.0 has in a card",
    ),
    Framework(
        "fasta2a, streaming",
        "fasta2a",
        "`A2AClient(url).stream_message`",
        options={"streaming": True},
        faults=OF_FASTA2A_STREAMING,
    ),
    Framework("BeeAI", "beeai", "`A2AAgent`", faults=OF_BEEAI),
    Framework(
        "BeeAI, not streaming",
        "beeai",
        "`A2AAgent`, run with `streaming=False`",
        options={"streaming": False},
        faults=OF_BEEAI,
    ),
    Framework(
        "CrewAI",
        "crewai",
        "`Agent(a2a=A2AClientConfig(trust_remote_completion_status=True))`",
        options={"settings": TRUSTING},
        faults=OF_CREWAI,
    ),
    Framework(
        "CrewAI, polling",
        "crewai",
        "the same with `updates=PollingConfig()`",
        options={"settings": TRUSTING, "polling": True},
        faults=OF_CREWAI_POLLING,
    ),
    Framework(
        "CrewAI, its model answers",
        "crewai",
        "`Agent(a2a=A2AClientConfig())`",
        faults=OF_CREWAI_MODEL,
    ),
    Framework(
        "python-a2a",
        "python-a2a",
        "`A2AClient`",
        faults=OF_PYTHON_A2A,
        lacks={"cancel": OWN_PROTOCOL},
    ),
)
CELLS = tuple((one, scenario) for scenario in SCENARIOS for one in ALL if scenario.name not in one.lacks)
