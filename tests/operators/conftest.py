import pytest

from tests.operators import rows


@pytest.fixture(autouse=True)
def _rows_process(request: pytest.FixtureRequest) -> None:
    """Before a test connects agents, see `rows.start`."""
    for name in ("hub", "embedded_hub"):
        if name in request.fixturenames:
            rows.start(request.getfixturevalue(name))
