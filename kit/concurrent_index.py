"""Migration operation that adds an index without blocking writers."""

from typing import Any

from django.db import migrations

UNLIMITED = "SET statement_timeout = 0; SET lock_timeout = 0"
AS_BEFORE = "RESET statement_timeout; RESET lock_timeout"


class AddIndexConcurrently(migrations.AddIndex):
    """`AddIndex` that does not block writers on PostgreSQL.

    The migration with this operation needs `atomic = False` and must contain nothing else.

    The operation may run again after an interruption. On SQLite the operation is a plain `AddIndex`.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the index concurrently; drops an invalid index of an earlier try first."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        schema_editor.execute(UNLIMITED)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}")
        schema_editor.add_index(model, self.index, concurrently=True)
        schema_editor.execute(AS_BEFORE)
