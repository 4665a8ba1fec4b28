"""The columns of an agent that its owner can edit, and validation of the columns that its A2A card shows."""

import re

from rest_framework import serializers

from accounts.rest import Body
from agents.models import Agent
from agents.models.agent import HUB_MODES
from agents.transcript.pieces import Json
from kit.columns import list_editable
from kit.names import NameRule

EDITABLE = list_editable(Agent)
MEDIA_TYPE = r"\A[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9*][a-z0-9!#$&^_.+-]*\Z"
MAX_MEDIA_TYPE_CHARS = 127
MAX_SKILLS = 20
MAX_DESCRIPTION_CHARS = 4_096  # enough for the schema of a tool
MAX_MODES = 20
MAX_PROMPTS = 6
MAX_PROMPT_CHARS = 400
MAX_TAG_CHARS = 32
TAG = r"^[a-z0-9]+(?:-[a-z0-9]+)*\Z"
TAGS = NameRule(
    lambda name: bool(re.match(TAG, name)) and len(name) <= MAX_TAG_CHARS,
    "want up to 32 lower-case letters, digits or inner hyphens, such as code-review",
    most=10,
    most_chars=MAX_TAG_CHARS,
)


def modes(source: str | None = None) -> serializers.ListField:
    """A field for media types, in their order; an empty list stands for the default."""
    child = serializers.RegexField(MEDIA_TYPE, max_length=MAX_MEDIA_TYPE_CHARS)
    return serializers.ListField(source=source, required=False, max_length=MAX_MODES, child=child)


def prompts(source: str) -> serializers.ListField:
    """A field for questions that a caller might ask."""
    child = serializers.CharField(max_length=MAX_PROMPT_CHARS)
    return serializers.ListField(source=source, required=False, max_length=MAX_PROMPTS, child=child)


def _short(max_length: int, *, most: int) -> serializers.ListField:
    child = serializers.CharField(max_length=max_length)
    return serializers.ListField(required=False, max_length=most, child=child)


class SkillBody(Body):
    """A skill as A2A cards have it; without modes it has the agent's."""

    id = serializers.CharField(max_length=64)
    name = serializers.CharField(max_length=120)
    description = serializers.CharField(required=False, allow_blank=True, max_length=MAX_DESCRIPTION_CHARS)
    tags = _short(64, most=20)
    examples = _short(400, most=20)
    inputModes = modes()
    outputModes = modes()


def checked_skills(skills: list[Json]) -> list[Json]:
    """Check that the ids of skills differ, because callers name a skill by its id; returns the skills.

    Raises:
        ValidationError: two skills have one id.
    """
    ids = [skill["id"] for skill in skills]
    if twice := [one for one in ids if ids.count(one) > 1]:
        raise serializers.ValidationError(f"skill ids must differ: {twice[0]} is used twice")
    return skills


def checked_modes(modes: list[str]) -> list[str]:
    """Check that every A2A caller can send or take one of the media types; returns each of them once.

    Raises:
        ValidationError: none of the hub's own media types is among them.
    """
    if modes and not set(modes) & set(HUB_MODES):
        raise serializers.ValidationError(f"want {' or '.join(HUB_MODES)} among them")
    return list(dict.fromkeys(modes))
