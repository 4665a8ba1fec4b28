"""The codes of errors that A2A 0.3 has differently (docs/reference/errors.md)."""

from a2a_bridge.wire.dialects.v03 import V03
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.errors import agent_unreachable, not_continuable
from a2a_bridge.wire.task import State


def test_an_error_has_the_code_of_its_dialect() -> None:
    for make, code, code_of_03 in [
        (lambda: agent_unreachable(State.WORKING), -32002, -32004),
        (lambda: not_continuable(State.COMPLETED), -32004, -32600),
        (lambda: not_continuable(State.WORKING), -32004, -32004),
    ]:
        assert (V1.error(make()).code, V03.error(make()).code) == (code, code_of_03), (make, code, code_of_03)
