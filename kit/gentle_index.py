"""Adding an index to a table that is written to meanwhile."""

from typing import Any

from django.db import migrations

UNLIMITED = "SET statement_timeout = 0; SET lock_timeout = 0"
AS_BEFORE = "RESET statement_timeout; RESET lock_timeout"


class AddIndexGently(migrations.AddIndex):
    """`AddIndex` that locks nobody out on PostgreSQL. Its migration says `atomic = False`, and holds nothing else.

    May run again after it was cut off. SQLite has no other way than to do it at once.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Build it beside the writes; a piece left of an earlier try goes first."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        schema_editor.execute(UNLIMITED)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}")
        schema_editor.add_index(model, self.index, concurrently=True)
        schema_editor.execute(AS_BEFORE)
