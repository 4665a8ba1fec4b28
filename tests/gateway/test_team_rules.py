"""The rules of a team as one process knows them."""

import asyncio

import pytest

from accounts.tokens import get_or_create_local_user
from gateway.service.team_rules import READ_EVERY_S, RulesCache, change_policy
from kit.async_db import db_call


@pytest.mark.django_db(transaction=True)
async def test_frames_that_come_at_once_share_one_look_at_the_rules() -> None:
    now = [0.0]
    owner = await db_call(get_or_create_local_user)("owner")
    rules = RulesCache(lambda: now[0])
    found = await asyncio.gather(*(rules.get(owner.pk) for _ in range(50)))
    assert len({id(one) for one in found}) == 1
    await db_call(change_policy)(owner.pk, {"requires_signature": True})
    assert not (await rules.get(owner.pk)).demands_signature
    now[0] = READ_EVERY_S
    leaves = asyncio.create_task(rules.get(owner.pk))
    await asyncio.sleep(0)
    leaves.cancel()  # costs the others nothing
    assert (await rules.get(owner.pk)).demands_signature
