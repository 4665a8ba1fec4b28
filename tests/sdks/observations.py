"""Observations of a client, read alike for every SDK and version of A2A."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]
KINDS = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
ENDED = {"completed", "failed", "canceled", "rejected"}


@dataclass
class Observation:
    """One line of a client's program: the step it was at, and the JSON it holds of what came."""

    step: str
    value: Any

    @cached_property
    def kind(self) -> str:
        """`task`, `message`, `status-update` or `artifact-update`."""
        if "kind" in self.value:
            return str(self.value["kind"])
        return next((KINDS.get(key, key) for key in self._wrapped), "task")

    @property
    def _wrapped(self) -> Json:
        return {key: self.value[key] for key in ("task", "message", *KINDS) if key in self.value}

    @cached_property
    def body(self) -> Json:
        """The Task, Message or event itself, out of what 1.0 wraps it in."""
        body: Json = next(iter(self._wrapped.values()), self.value)
        return body

    @property
    def task_id(self) -> str:
        return str(self.body.get("taskId") or self.body.get("id") or "")

    @property
    def context_id(self) -> str:
        return str(self.body["contextId"])

    @property
    def state(self) -> str:
        """As 0.3 spells it: `input-required`; empty where there is none."""
        state = str(self.body.get("status", {}).get("state", ""))
        return state.removeprefix("TASK_STATE_").lower().replace("_", "-")

    @property
    def text(self) -> str:
        """The words of an observation: a message's text, or that of the status."""
        message = self.body if self.kind == "message" else self.body.get("status", {}).get("message")
        return text_of(message["parts"]) if message else ""

    @property
    def artifacts(self) -> dict[str, list[Json]]:
        """The parts of each artifact by its id."""
        artifacts = [self.body["artifact"]] if "artifact" in self.body else self.body.get("artifacts", [])
        return {each["artifactId"]: [part(each) for each in each.get("parts", [])] for each in artifacts}

    @property
    def history(self) -> list[tuple[str, str]]:
        """The messages of the history: `user` or `agent`, and the text."""
        messages = self.body.get("history", [])
        return [(each["role"].removeprefix("ROLE_").lower(), text_of(each["parts"])) for each in messages]

    @property
    def reply(self) -> str:
        """The agent's answer in words: a message's, or that of all the artifacts of a task or event."""
        if self.kind == "message":
            return self.text
        return "".join(each.get("text", "") for parts in self.artifacts.values() for each in parts)


def text_of(parts: list[Json]) -> str:
    return "".join(each.get("text", "") for each in parts)


def part(given: Json) -> Json:
    """A part as A2A 1.0 writes it, without the members that are empty."""
    made = {name: value for name, value in given.items() if name != "kind" and value not in ("", None)}
    file = made.pop("file", {})
    names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
    return made | {names[name]: value for name, value in file.items()}
