"""The structured results of tools. The schemas of `outputSchema` are made of these structs."""

from typing import Annotated

from msgspec import Meta, Struct

from a2a_bridge.wire.task import State


class ListedAgent(Struct, frozen=True):
    """An agent that the caller may ask."""

    handle: Annotated[str, Meta(description="owner/slug, for ask_agent.")]
    state: Annotated[str, Meta(description="Whether it can be asked now: online, busy, offline and so on.")]
    name: str
    summary: Annotated[str, Meta(description="What its owner says of it, from the beginning; may be empty.")]


class AgentList(Struct, frozen=True):
    """The result of list_agents."""

    agents: list[ListedAgent]
    has_more: Annotated[bool, Meta(description="Whether there are more: narrow the list with `query`.")]


class NamedFile(Struct, frozen=True):
    """A file of an answer."""

    name: str
    media_type: Annotated[str, Meta(description="Empty where the agent named none.")]
    uri: Annotated[str, Meta(description="For resources/read, or a web address, or a label; may be empty.")]


class TaskResult(Struct, frozen=True):
    """The result of ask_agent, answer_task and get_task."""

    task_id: Annotated[str, Meta(description="For get_task, answer_task and cancel_task.")]
    context_id: Annotated[str, Meta(description="For ask_agent, to go on with the conversation.")]
    handle: Annotated[str, Meta(description="The agent.")]
    state: State
    text: Annotated[
        str,
        Meta(description="The answer; or what the agent asks back, or what happened, and what to do then."),
    ]
    files: list[NamedFile]
