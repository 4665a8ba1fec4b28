"""Fields of bodies and forms, made from columns."""

from typing import Annotated, Any, TypedDict

import pytest
from django import forms
from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models

from accounts.rest import ColumnBody
from kit.columns import list_editable, make_bounded_field, make_form_field
from kit.rows import RowSource


class Kettle(models.Model):
    name = models.CharField(max_length=5)
    shown = models.BooleanField("in the list", default=True, help_text="Others see it.")
    litres = models.PositiveSmallIntegerField(
        "volume", default=2, validators=[MinValueValidator(1), MaxValueValidator(9)]
    )
    kind = models.CharField(max_length=3, choices=[("gas", "Gas"), ("el", "Electric")], blank=True, default="")
    note = models.TextField(blank=True, validators=[MaxLengthValidator(7)])
    sold = models.IntegerField(default=0)
    made = models.DateField(null=True, editable=False)

    class Meta:
        app_label = "contracts"
        managed = False

    def __str__(self) -> str:
        return self.name


class ShownKettle(TypedDict):
    name: str
    visible: Annotated[bool, RowSource("shown")]
    litres: int
    kind: str | None
    note: str
    sold: int


class KettleBody(ColumnBody):
    class Meta:
        model, columns, shape = Kettle, ("name", "shown", "litres", "kind", "note"), ShownKettle


def read(given: Any, *, partial: bool = True) -> Any:
    body = KettleBody(data=given, partial=partial)
    return body.validated_data if body.is_valid() else {name: str(one[0]) for name, one in body.errors.items()}


def test_a_body_has_the_named_columns_by_the_names_of_the_shape() -> None:
    assert list(KettleBody().fields) == ["name", "visible", "litres", "kind", "note"]
    assert list_editable(Kettle) == ("name", "shown", "litres", "kind", "note", "sold")
    given = {"visible": False, "litres": 9, "note": " as it is\n"[:7]}
    assert read(given) == {"shown": False, "litres": 9, "note": " as it "}
    assert read({}, partial=False) == {"name": "This field is required."}


@pytest.mark.parametrize(
    "given", [{"name": "kettle"}, {"litres": 10}, {"litres": 0}, {"kind": "oil"}, {"note": "x" * 8}]
)
def test_a_body_has_the_bounds_of_the_columns(given: dict[str, Any]) -> None:
    assert list(read(given)) == list(given)


def test_null_is_the_empty_text_where_the_shape_shows_null() -> None:
    assert read({"kind": None}) == {"kind": ""}
    assert read({"kind": "gas"}) == {"kind": "gas"}
    assert list(read({"kind": ""})) == ["kind"]
    assert list(read({"note": None})) == ["note"]


def test_a_form_field_has_the_label_hint_and_bounds_of_its_column() -> None:
    shown = make_form_field(Kettle, "shown", forms.BooleanField, required=False)
    assert (shown.label, shown.help_text, shown.required) == ("In the list", "Others see it.", False)
    litres: Any = make_bounded_field(Kettle._meta.get_field("litres"))
    assert (litres.label, litres.min_value, litres.max_value) == ("Volume", 1, 9)
