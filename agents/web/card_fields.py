"""The fields of a form that say what an agent's A2A card says of it."""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.core.validators import RegexValidator
from rest_framework import serializers

from agents.core.card_settings import (
    HUB_MODES,
    MAX_MEDIA_TYPE_CHARS,
    MAX_MODES,
    MAX_SKILLS,
    MEDIA_TYPE,
    SkillBody,
    checked_output_modes,
    checked_skills,
)
from agents.web import skill_lines

One = TypeVar("One")
INPUT_MODES = [("text/plain", "Text (text/plain)"), ("application/json", "Data (application/json)")]
SKILL_EXAMPLE = "id: summarise\nname: Summarise a text\ndescription: Three sentences of any text.\ntag: text\n\
example: Summarise this mail: …"


class LinesField(forms.CharField):
    """A list of short texts, written one on a line."""

    widget = forms.Textarea(attrs={"rows": 4, "cols": 60})

    def prepare_value(self, value: Any) -> Any:
        """The list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[Any]:
        """The lines as a list."""
        lines = [line.strip() for line in super().clean(value).splitlines()]
        return [line for line in lines if line]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compares lines with lines."""
        return super().has_changed(self.prepare_value(initial), self.prepare_value(data))


class InputModesField(forms.MultipleChoiceField):
    """What an agent takes: text, data or both."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"choices": INPUT_MODES, **options})


class OutputModesField(LinesField):
    """The media types that an agent answers with."""

    widget = forms.Textarea(attrs={"rows": 2, "cols": 60, "placeholder": "\n".join(HUB_MODES)})

    def clean(self, value: Any) -> list[str]:
        """Media types, each once, and one that callers can take."""
        modes = [line.lower() for line in super().clean(value)]
        is_type = RegexValidator(MEDIA_TYPE)
        for mode in modes:
            try:
                is_type(mode)
            except forms.ValidationError:
                raise forms.ValidationError(f"“{mode}” is no media type; want one such as text/plain.") from None
            if len(mode) > MAX_MEDIA_TYPE_CHARS:
                raise forms.ValidationError(f"At most {MAX_MEDIA_TYPE_CHARS} characters on a line.")
        if len(modes) > MAX_MODES:
            raise forms.ValidationError(f"At most {MAX_MODES} lines.")
        return _checked(checked_output_modes, modes)


class SkillsField(forms.CharField):
    """The skills of a card, as `agents.web.skill_lines` writes them."""

    widget = forms.Textarea(attrs={"rows": 8, "cols": 60, "placeholder": SKILL_EXAMPLE})

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def prepare_value(self, value: Any) -> Any:
        """The list as text."""
        return skill_lines.write(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[dict[str, Any]]:
        """The text as a list."""
        try:
            typed = skill_lines.read(super().clean(value))
        except skill_lines.BadLine as bad:
            raise forms.ValidationError(f"{bad}.") from None
        if len(typed) > MAX_SKILLS:
            raise forms.ValidationError(f"At most {MAX_SKILLS} skills.")
        return _checked(checked_skills, [_skill(number, one) for number, one in enumerate(typed, 1)])

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compares skills with skills; what cannot be read has changed."""
        try:
            return skill_lines.read(data or "") != skill_lines.read(skill_lines.write(initial or []))
        except skill_lines.BadLine:
            return True


def _skill(number: int, typed: dict[str, Any]) -> dict[str, Any]:
    """One skill by the rules of the native API."""
    body = SkillBody(data=typed)
    if body.is_valid():
        return dict(body.validated_data)
    member, said = next(iter(body.errors.items()))
    name = typed.get("id") or number
    raise forms.ValidationError(f"Skill {name}, {member}: {' '.join(_texts(said))}")


def _texts(said: Any) -> list[str]:
    """The texts of an error, at whatever depth."""
    if isinstance(said, dict):
        return [text for one in said.values() for text in _texts(one)]
    if isinstance(said, list):
        return [text for one in said for text in _texts(one)]
    return [str(said)]


def _checked(rule: Callable[[list[One]], list[One]], value: list[One]) -> list[One]:
    """The value by a rule of the native API."""
    try:
        return rule(value)
    except serializers.ValidationError as wrong:
        said = _texts(wrong.detail)[0]
        raise forms.ValidationError(f"{said[:1].upper()}{said[1:]}.") from None
