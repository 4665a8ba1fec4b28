"""Fields for lists that an owner writes: as an array in a body of REST, and one entry on a line in a form."""

from typing import Any

from django import forms
from rest_framework import serializers
from rest_framework.fields import empty

from kit.names import NameRule


class NameList(serializers.ListField):
    """A list of names in a body."""

    def __init__(self, *, rule: NameRule, **options: Any) -> None:
        child = serializers.CharField(max_length=rule.most_chars)
        super().__init__(**{"child": child, "max_length": rule.most, "required": False, **options})
        self.rule = rule

    def run_validation(self, data: Any = empty) -> list[str] | None:
        """Validate the list as DRF does, then each name."""
        names = super().run_validation(data)
        try:
            return None if names is None else self.rule.check(names)
        except ValueError as bad:
            raise serializers.ValidationError(str(bad)) from None


class LinesField(forms.CharField):
    """A list of short texts, written one on a line; at most `most`, each of at most `most_chars`."""

    widget = forms.Textarea(attrs={"rows": 4, "cols": 60})

    def __init__(self, *, most: int | None = None, most_chars: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._most, self._most_chars = most, most_chars

    def prepare_value(self, value: Any) -> Any:
        """The list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[Any]:
        """The lines as a list."""
        lines = list(filter(None, map(str.strip, super().clean(value).splitlines())))
        if self._most and len(lines) > self._most:
            raise forms.ValidationError(f"At most {self._most} lines.")
        if self._most_chars and any(len(line) > self._most_chars for line in lines):
            raise forms.ValidationError(f"At most {self._most_chars} characters on a line.")
        return lines

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compares lines with lines."""
        return super().has_changed(self.prepare_value(initial), self.prepare_value(data))


class NameLines(LinesField):
    """A list of names in a form."""

    def __init__(self, *, rule: NameRule, **options: Any) -> None:
        super().__init__(most=rule.most, **options)
        self._rule = rule

    def clean(self, value: Any) -> list[str]:
        """The names as a list."""
        try:
            return self._rule.check(super().clean(value))
        except ValueError as bad:
            raise forms.ValidationError(f"{bad}.") from None
