"""The plans by which the database finds the turns that a test reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from agents.models import Turn


@contextmanager
def plans_of_turns() -> Iterator[list[str]]:
    """The plan of each statement that reads or changes turns."""
    plans: list[str] = []
    how = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if f'"{Turn._meta.db_table}"' in sql and sql.startswith(("SELECT", "UPDATE")):
            with connection.cursor() as cursor:
                cursor.execute(f"{how} {sql}", params)
                plans.append("\n".join(str(row[-1]) for row in cursor.fetchall()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield plans
