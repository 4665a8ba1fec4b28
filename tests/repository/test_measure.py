"""`python -m lab.measure` counts what it says it counts."""

import pytest

from lab import measure


@pytest.mark.deep
@pytest.mark.slow
def test_a_request_is_counted_from_socket_to_socket() -> None:
    figures = {one.name: one.names for one in measure.running_figures()}
    for kind, wanted in [
        ("an ask", {"hub", "a2a_bridge", "accounts", "agents", "kit"}),
        ("a PATCH of an agent", {"hub", "accounts", "agents", "kit"}),
        ("a gateway message", {"hub", "gateway", "agents", "kit"}),
    ]:
        modules = figures[f"modules of {kind}, from socket to socket"]
        assert wanted <= {path.split("/")[0] for path in modules}
    reply = figures["modules of a reply, from its frame to the settled turn"]
    assert {"a2a_bridge", "agents", "hub", "kit"} <= {path.split("/")[0] for path in reply}
    assert not any(path.startswith("accounts") for path in reply)  # no caller is looked up meanwhile
