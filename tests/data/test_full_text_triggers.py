"""The full text index of SQLite outlives a migration that makes its table anew."""

from typing import Any

import pytest
from django.db import connection, models

from agents.models import Agent
from tests.native.rows import make_agent, person

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL alters its tables")


def test_a_changed_column_leaves_the_index_of_words(transactional_db: Any) -> None:
    owner = person("alice").user
    make_agent(owner, "before", name="gardener")
    changed = models.CharField(max_length=161)
    changed.set_attributes_from_name("tagline")
    with connection.schema_editor() as editor:
        editor.alter_field(Agent, Agent._meta.get_field("tagline"), changed)
    make_agent(owner, "after", name="gardener")
    try:
        assert {agent.handle for agent in Agent.objects.matching("gardener")} == {"alice/before", "alice/after"}
    finally:
        with connection.schema_editor() as editor:
            editor.alter_field(Agent, changed, Agent._meta.get_field("tagline"))
