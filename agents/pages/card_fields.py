"""Form fields for an agent's A2A card: media types and skills.

An owner types skills as `key: value` lines; each skill begins with its `id` line. A line that begins with two
spaces continues the value above it. Empty lines have no meaning.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django import forms
from django.core.validators import RegexValidator
from rest_framework import serializers

from agents.core.card_settings import (
    MAX_MEDIA_TYPE_CHARS,
    MAX_MODES,
    MAX_SKILLS,
    MEDIA_TYPE,
    SkillBody,
    checked_modes,
    checked_skills,
)
from agents.models.agent import HUB_MODES
from agents.transcript.pieces import Json
from kit.list_fields import LinesField

One = TypeVar("One")
SKILL_EXAMPLE = "id: summarise\nname: Summarise a text\ndescription: Three sentences of any text.\ntag: text\n\
example: Summarise this mail: …"
SINGLE_KEYS = {"id": "id", "name": "name", "description": "description"}
REPEATED_KEYS = {"tag": "tags", "example": "examples", "input": "inputModes", "output": "outputModes"}
CONTINUATION = "  "
SKILL_KEYS = ", ".join([*SINGLE_KEYS, *REPEATED_KEYS])


class BadLine(ValueError):
    """A line of the text is invalid; the message names the line."""


class ModesField(LinesField):
    """A field for media types, one on each line."""

    widget = forms.Textarea(attrs={"rows": 2, "cols": 60, "placeholder": "\n".join(HUB_MODES)})

    def __init__(self, **options: Any) -> None:
        super().__init__(most=MAX_MODES, most_chars=MAX_MEDIA_TYPE_CHARS, **options)

    def clean(self, value: Any) -> list[str]:
        """Check the media types, of which one must be usable by every caller; returns each of them once."""
        modes = [line.lower() for line in super().clean(value)]
        is_type = RegexValidator(MEDIA_TYPE)
        for mode in modes:
            try:
                is_type(mode)
            except forms.ValidationError:
                raise forms.ValidationError(f"“{mode}” is no media type; want one such as text/plain.") from None
        return _checked(checked_modes, modes)


class SkillsField(forms.CharField):
    """A field for the skills of a card, as `key: value` lines."""

    widget = forms.Textarea(attrs={"rows": 8, "cols": 60, "placeholder": SKILL_EXAMPLE})

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def prepare_value(self, value: Any) -> Any:
        """The list of skills as text."""
        return write_skills(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[dict[str, Any]]:
        """The list of skills that the text contains."""
        try:
            typed = read_skills(super().clean(value))
        except BadLine as bad:
            raise forms.ValidationError(f"{bad}.") from None
        if len(typed) > MAX_SKILLS:
            raise forms.ValidationError(f"At most {MAX_SKILLS} skills.")
        return _checked(checked_skills, [_skill(number, one) for number, one in enumerate(typed, 1)])

    def has_changed(self, initial: Any, data: Any) -> bool:
        """True if the skills differ, or if the text cannot be read."""
        try:
            return read_skills(data or "") != read_skills(write_skills(initial or []))
        except BadLine:
            return True


def _skill(number: int, typed: dict[str, Any]) -> dict[str, Any]:
    """A skill that the native API accepts; otherwise raises the form's ValidationError."""
    body = SkillBody(data=typed)
    if body.is_valid():
        return dict(body.validated_data)
    member, said = next(iter(body.errors.items()))
    name = typed.get("id") or number
    raise forms.ValidationError(f"Skill {name}, {member}: {' '.join(_texts(said))}")


def _texts(said: Any) -> list[str]:
    """The texts of a nested error."""
    if isinstance(said, dict):
        return [text for one in said.values() for text in _texts(one)]
    if isinstance(said, list):
        return [text for one in said for text in _texts(one)]
    return [str(said)]


def _checked(rule: Callable[[list[One]], list[One]], value: list[One]) -> list[One]:
    """The value that a rule of the native API returns; a refusal becomes the form's ValidationError."""
    try:
        return rule(value)
    except serializers.ValidationError as wrong:
        said = _texts(wrong.detail)[0]
        raise forms.ValidationError(f"{said[:1].upper()}{said[1:]}.") from None


def read_skills(text: str) -> list[Json]:
    """Parse the skills in a text, without checking their values.

    Raises:
        BadLine: a line has no known key, belongs to no skill, or repeats a key that a skill has only once.
    """
    skills: list[Json] = []
    last = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if line.startswith(CONTINUATION) and last:
            _continue_line(skills[-1], last, line.removeprefix(CONTINUATION))
        elif line.strip():
            last = _begin_line(skills, line, number)
    return skills


def write_skills(skills: Sequence[Json]) -> str:
    """The skills as text, which `read_skills` parses."""
    return "\n\n".join("\n".join(_lines(skill)) for skill in skills)


def _begin_line(skills: list[Json], line: str, number: int) -> str:
    """Add the value of a line with a key; returns the member of the skill that has the value."""
    key, colon, value = line.partition(":")
    key, value = key.strip().lower(), value.strip()
    if not colon or key not in SINGLE_KEYS | REPEATED_KEYS:
        raise BadLine(f"Line {number}: want one of {SKILL_KEYS}, a colon and a text")
    if key == "id":
        skills.append({})
    elif not skills:
        raise BadLine(f"Line {number}: a skill begins with its id")
    if key in REPEATED_KEYS:
        skills[-1].setdefault(REPEATED_KEYS[key], []).append(value)
        return REPEATED_KEYS[key]
    if key in skills[-1]:
        raise BadLine(f"Line {number}: the skill {skills[-1]['id']} has a {key} already")
    skills[-1][key] = value
    return key


def _continue_line(skill: Json, member: str, line: str) -> None:
    if isinstance(skill[member], list):
        skill[member][-1] += f"\n{line}"
    else:
        skill[member] += f"\n{line}"


def _lines(skill: Json) -> list[str]:
    said = [(key, skill[member]) for key, member in SINGLE_KEYS.items() if skill.get(member)]
    said += [(key, value) for key, member in REPEATED_KEYS.items() for value in skill.get(member, ())]
    return [f"{key}: {value}".replace("\n", f"\n{CONTINUATION}") for key, value in said]
