"""The page of the gateway has a line for each frame with its required fields, each error code and each service."""

import re

from gateway.surface.handlers import SERVICES
from gateway.wire.errors import GatewayErrorCode
from gateway.wire.frame_types import FRAME_TYPES
from tests.repository.test_docs import page, rows_of

PAGE = page("gateway.md")


def section(name: str) -> str:
    return PAGE.partition(f"\n### {name}\n")[2].partition("\n## ")[0]


def test_every_frame_has_its_line_with_its_required_fields() -> None:
    for type_ in FRAME_TYPES.values():
        line = rows_of(section("Frame types"))[type_.name]
        assert not [one.path for one in type_.fields if one.is_required and f"`{one.path}`" not in line], type_


def test_every_error_code_has_its_line() -> None:
    lines = dict(re.findall(r"^\| (\d{4}) \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert lines == {str(code.value): code.name for code in GatewayErrorCode}


def test_every_service_is_named() -> None:
    assert not [name for name in SERVICES if f"`{name}`" not in section("Services")]
