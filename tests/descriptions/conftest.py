"""A hub with something of everything, and its description as schemathesis reads it."""

from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis import openapi as schemathesis

from lab.hub_process import HubProcess
from tests.conftest import MakeStorage
from tests.descriptions.cases import OPTIONS, WITHIN_S
from tests.descriptions.seeded import Seeded, seed


@pytest.fixture(scope="module")
def live(make_storage: MakeStorage) -> Iterator[tuple[Seeded, Any]]:
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS)
    try:
        url = f"{hub.url}/api/v1/schema"
        yield seed(hub), schemathesis.from_url(url, wait_for_schema=WITHIN_S)
    finally:
        hub.stop()
