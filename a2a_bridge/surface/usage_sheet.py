"""The usage sheet of an agent: a page of Markdown, beside the card, that shows models and programs how to ask the
agent.
"""

import re
from collections.abc import Iterable, Iterator

from a2a_bridge.surface.cards import (
    ASK_DESCRIPTION,
    COMPOSABLE_NOTE,
    ISOLATED_NOTE,
    MODES,
    Json,
    UsageToday,
    url_of,
)
from agents.models import Agent
from kit.asgi import MAX_BODY_BYTES

MEDIA_TYPE = "text/markdown; charset=utf-8"
MARKUP = re.compile(r"[\\\[\]()!*_&|<`]")  # what begins or ends inline markup, an entity or a tag
ACCESS = {
    Agent.Access.PUBLIC: "Every user of this hub may ask it.",
    Agent.Access.LIMITED: "Its owner and the users they named may ask it.",
    Agent.Access.PRIVATE: "Its owner alone may ask it.",
}
ENDPOINTS = """\
| Protocol | Address | Header | Method |
|---|---|---|---|
| A2A 1.0, JSON-RPC | `POST {url}` | `A2A-Version: 1.0` | `SendMessage`, `SendStreamingMessage` |
| A2A 1.0, HTTP+JSON | `POST {url}/message:send` | `A2A-Version: 1.0` | |
| A2A 0.3, JSON-RPC | `POST {url}` | | `message/send`, `message/stream` |
| the hub's own, JSON-RPC | `POST {url}` | | `SendMessage`, `SendStreamingMessage` |

Its agent card: `{url}/agent-card.json`. An SDK is given `{url}/`, with the slash at the end.

An agent that is connected to this hub by `/channel` needs no other token: it sends `dispatch_request` with
the handle `@{handle}`, and the prompt."""
AUTH = """\
Send `Authorization: Bearer TOKEN` with every request: an app token, made on {public_url}/account, or a session
token from signing in. Without one the answer is HTTP 401."""
CURL = """\
```sh
curl -s {url} \\
  -H "Authorization: Bearer $TOKEN" -H "A2A-Version: 1.0" -H "Content-Type: application/json" \\
  -d '{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":
    {{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"hello"}}]}}}}}}'
```

The answer has `result.message`, or `result.task`: `status.state` is `TASK_STATE_COMPLETED` and `artifacts` hold
the reply; or it is `TASK_STATE_FAILED` or `TASK_STATE_REJECTED` and `status.message` says why; or it is
`TASK_STATE_INPUT_REQUIRED`: answer with a message that has this `taskId`. A `messageId` names a message: make
a new one for each, and send the same again only to repeat it."""


def usage_sheet(agent: Agent, today: UsageToday, public_url: str, *, reply_wait_s: float) -> str:
    """The sheet. Texts of the owner are quoted or escaped, so that none reads as a part of it."""
    url = url_of(agent, public_url)
    sections = (
        (f"# How to ask @{agent.handle}", _about(agent, today)),
        ("## What it does", _does(agent)),
        ("## Skills", _skills(agent)),
        ("## Addresses", [ENDPOINTS.format(url=url, handle=agent.handle)]),
        ("## Who may ask", [ACCESS[Agent.Access(agent.access)], "", AUTH.format(public_url=public_url)]),
        ("## Media types", _modes(agent)),
        ("## Limits", _limits(agent, today, reply_wait_s)),
        ("## Example", [CURL.format(url=url)]),
    )
    return "\n\n".join("\n".join([title, "", *lines]) for title, lines in sections) + "\n"


def _about(agent: Agent, today: UsageToday) -> Iterator[str]:
    yield f"- Name: {_line(agent.name)}"
    yield f"- Handle: `@{agent.handle}`"
    yield f"- Now: {'online' if today.online else 'offline, and it takes no questions'}"
    yield f"- Isolation: {ISOLATED_NOTE if agent.isolated else COMPOSABLE_NOTE}"


def _does(agent: Agent) -> Iterator[str]:
    yield "In its owner's words:"
    yield ""
    said = "\n\n".join(filter(None, (agent.tagline, agent.description))) or agent.name
    yield from (f"> {line}" for line in said.splitlines())


def _skills(agent: Agent) -> Iterator[str]:
    skills: Iterable[Json] = agent.skills or [{"id": "ask", "name": "ask", "description": ASK_DESCRIPTION}]
    for skill in skills:
        said = skill.get("description")
        yield f"- `{_code(skill['id'])}`, {_line(skill['name'])}{f': {_line(said)}' if said else ''}"
        yield from (f"  - for example: {_line(one)}" for one in skill.get("examples") or ())
    if not agent.skills:
        yield from (f"  - for example: {_line(one)}" for one in agent.suggested_prompts if one)


def _modes(agent: Agent) -> Iterator[str]:
    for what, modes in (("takes", agent.input_modes), ("answers with", agent.output_modes)):
        yield f"- It {what} {', '.join(f'`{mode}`' for mode in modes or MODES)}."


def _limits(agent: Agent, today: UsageToday, reply_wait_s: float) -> Iterator[str]:
    left = max(0, agent.daily_budget - today.queries)
    yield f"- Questions a day (UTC): {agent.daily_budget} of all callers together, {left} left today."
    if agent.daily_limit_microusd is not None or agent.caller_limit_microusd is not None:
        yield "- Its owner limits its cost of a day (UTC): once that is reached, it takes no questions that day."
    if agent.caller_budget is not None:
        yield f"- Of these, questions of one caller: {agent.caller_budget}, unless its owner gave you another."
    yield f"- Open questions of one caller: {agent.concurrency_cap}. It answers one caller at a time."
    if agent.queue_max:
        yield (
            f"- While it answers another caller, up to {agent.queue_max} A2A messages wait for up to"
            f" {agent.queue_wait_s} seconds; further ones are refused."
        )
    yield f"- Seconds it may take: {round(reply_wait_s)} when you wait for the answer, " + (
        f"{agent.wait_s or round(reply_wait_s)} when you stream or come back for it."
    )
    yield f"- Bytes of a request: {agent.max_body_bytes or MAX_BODY_BYTES}."
    if agent.caller_approvals:
        yield (
            "- It may ask you for approval (`TASK_STATE_INPUT_REQUIRED`, data of type `approval_request`):"
            " answer `approve` or `deny` in a message with this `taskId`."
        )


def _line(text: str) -> str:
    """A text of the owner on one line, without markup."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _code(text: str) -> str:
    """A text of the owner for a code span."""
    return " ".join(text.split()).replace("`", "'")
