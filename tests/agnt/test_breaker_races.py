"""Calls of two processes at the second when an open breaker lets one through."""

import asyncio
import time
from collections import Counter

import pytest

from lab.hub_process import DEFAULTS
from lab.hub_storage import HubStorage, hub_env, manage
from tests.race_programs import run_program

AT_ONCE = 5  # of each process
WITHIN_S = 90
MAKE = """
from accounts.tokens import get_or_create_local_user
from agnt.models import Breaker, Venue
from agnt.service.networks import get_or_create_network
network = get_or_create_network(get_or_create_local_user("owner"))
venue = Venue.objects.create(network=network, slug="a", name="A")
Breaker.objects.create(network=network, venue=venue, opened_at_s={opened_at_s}, openings=1)
print("made", network.pk, venue.pk)
"""


@pytest.mark.slow
async def test_of_ten_calls_of_two_processes_at_second_300_one_probes(home: HubStorage) -> None:
    env = hub_env({**DEFAULTS, **home.env, "PUBLIC_URL": "http://127.0.0.1:9"})
    env |= {"DJANGO_SETTINGS_MODULE": "hub.settings"}
    said = await asyncio.to_thread(manage, env, "shell", "-c", MAKE.format(opened_at_s=time.time() - 300))
    network, venue = map(int, said.split("made", 1)[1].split()[:2])
    others_ready = asyncio.Barrier(2)
    asked = {"network": network, "venue": venue, "calls": AT_ONCE}
    async with asyncio.timeout(WITHIN_S):
        found = await asyncio.gather(
            *(run_program("tests.agnt.breaker_calls", env, asked, others_ready) for _ in range(2))
        )
    assert sum(map(Counter, found), Counter()) == {"probe": 1, "refused": 2 * AT_ONCE - 1}
