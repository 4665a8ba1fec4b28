"""Fields of REST bodies and of forms, made from the columns of a table (docs/adr/0179).

A column declares the field that an owner writes, once: its label (`verbose_name`), its hint (`help_text`), its
bounds and its choices. A shape (`kit.rows`) declares its name in REST.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from django import forms
from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.text import capfirst
from rest_framework import serializers

Column: TypeAlias = "models.Field[Any, Any]"
Made = TypeVar("Made", bound=forms.Field)
_BUILDER = serializers.ModelSerializer[Any]()


def list_editable(model: type[models.Model]) -> tuple[str, ...]:
    """The names of the columns that a form may write, without foreign keys."""
    columns = (one for one in model._meta.concrete_fields if not one.is_relation)
    return tuple(one.name for one in columns if one.editable and not one.primary_key)


def make_rest_field(column: Column, name: str, *, is_nullable: bool) -> serializers.Field[Any, Any, Any, Any]:
    """The field of a body for a column, with its bounds and choices. Long texts stay as they were written."""
    made, options = _BUILDER.build_standard_field(column.name, column)
    for shown in ("label", "help_text", "style"):
        options.pop(shown, None)
    if column.name != name:
        options["source"] = column.name
    if is_nullable and not column.null:
        options |= {"allow_null": True, "allow_blank": not column.choices}
    if isinstance(column, models.TextField):
        others = [one for one in column.validators if not isinstance(one, MaxLengthValidator)]
        bound = _find_bound(column, MaxLengthValidator)
        options |= {"trim_whitespace": False, "max_length": bound, "validators": others}
    return made(**options)


def make_form_field(model: type[models.Model], name: str, made: Callable[..., Made], **options: Any) -> Made:
    """Make a form field of another class than Django's default, with the label and the hint of a column."""
    column: Any = model._meta.get_field(name)
    label, is_required = capfirst(column.verbose_name), not column.blank
    return made(**{"label": label, "help_text": column.help_text, "required": is_required, **options})


def make_bounded_field(column: Column, **options: Any) -> forms.Field | None:
    """The form field that Django makes of a column, a number with its bounds; use it as `formfield_callback`."""
    if isinstance(column, models.IntegerField):
        bounds = {"min_value": MinValueValidator, "max_value": MaxValueValidator}
        options |= {name: _find_bound(column, validator) for name, validator in bounds.items()}
    return column.formfield(**options)


def _find_bound(column: Column, kind: type[Any]) -> Any:
    """The bound of the column's validator of this class; None if the column has no such validator."""
    return next((one.limit_value for one in column.validators if isinstance(one, kind)), None)
