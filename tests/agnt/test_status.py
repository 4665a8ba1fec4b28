"""The report of the status, which anyone may ask for."""

import asyncio

import pytest

from agnt.status import StatusReports

pytestmark = pytest.mark.django_db(transaction=True)


async def test_requests_at_once_are_one_look_at_the_database() -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return looks[-1]

    reports = StatusReports(clock)
    answers = await asyncio.gather(*(reports.make() for _ in range(20)))
    assert {one.status for one in answers} == {200}
    assert len(looks) == 1
