"""The questions of a framework's user, and the answers that the user should see."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Scenario:
    """The questions of one session, and a pattern for each: all that the user should see after that question.

    `agent_is`: `busy` with the question of another caller, or `spent`: another caller used up its daily budget.
    `is_canceled`: the user cancels the question while the agent works on it.
    """

    name: str
    title: str
    texts: tuple[str, ...]
    right: tuple[str, ...]
    agent_is: Literal["online", "offline", "busy", "spent"] = "online"
    is_token_wrong: bool = False
    is_canceled: bool = False


PLAIN = Scenario("plain", "a plain answer", ("hello",), ("echo: hello",))
STREAM = Scenario(
    "stream",
    "an answer in pieces",
    ("note reading | say a lifetime | say  is | say  a region",),
    ("a lifetime is a region",),
)
SCENARIOS = (
    PLAIN,
    STREAM,
    Scenario(
        "input", "a question back", ("ask which one?", "the second"), (".*which one?.*", "you said: the second")
    ),
    Scenario("auth", "a sign-in asked for", ("login sign in at x",), (".*sign in at x.*",)),
    Scenario("failure", "a failure", ("note reading | fail out of ink",), (".*out of ink.*",)),
    Scenario(
        "refused", "an agent that is offline", ("hello",), (".*agent channel offline.*",), agent_is="offline"
    ),
    Scenario(
        "busy",
        "an agent busy for another caller",
        ("hello",),
        (".*agent is processing a turn for another caller.*",),
        agent_is="busy",
    ),
    Scenario(
        "budget",
        "a budget that is spent",
        ("hello",),
        (r".*agent @\S+ hit its daily budget \(1\).*",),
        agent_is="spent",
    ),
    Scenario("cancel", "a cancel", ("note reading | wait",), ("(?i).*cancel.*",), is_canceled=True),
    Scenario("data", "data", ('data d {"pages": 2}',), (".*pages.*2.*",)),
    Scenario("file", "a file", ("raw f bytes",), (".*(bytes|Ynl0ZXM=).*",)),
    Scenario("several", "several artifacts", ("text a one | text b two",), (r"one\s*two",)),
    Scenario("turns", "two questions", ("hello", "again"), ("echo: hello", "echo: again")),
    Scenario("token", "a wrong token", ("hello",), (r"(?i).*(401|sign in|unauthorized).*",), is_token_wrong=True),
)
