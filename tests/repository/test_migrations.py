"""The release before runs on the new schema: what a migration after it may not do, and how to do it in two steps.

1. add a column nullable or with `db_default`, so that old code inserts rows without it; fill it by a job;
2. in the release after, when no old code runs: make it required, drop what nothing reads, and note it:
   `# two steps: …`.
"""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED

from kit.concurrent_index import AddIndexConcurrently
from tests.repository.tracked import named

RELEASED = {"accounts": "0004", "agents": "0005", "a2a_bridge": "0003", "webhooks": "0002"}
BIG = {
    ("agents", "turn"),
    ("agents", "event"),
    ("agents", "dailyusage"),
    ("agents", "opmessage"),
    ("agents", "tokenusage"),
    ("agents", "file"),
    ("webhooks", "delivery"),
    ("a2a_bridge", "storedtask"),
    ("a2a_bridge", "storedevent"),
    ("a2a_bridge", "push"),
    ("a2a_bridge", "sendkey"),
}
TWO_STEPS = "# two steps: "
UNSAFE = (
    migrations.RenameField,
    migrations.RenameModel,
    migrations.RemoveField,
    migrations.DeleteModel,
    migrations.AlterField,
    migrations.AlterModelTable,
    migrations.AlterUniqueTogether,
    migrations.AddConstraint,
    migrations.RunSQL,
)


def migrations_since() -> Iterator[tuple[str, ModuleType]]:
    for path in named("*/migrations/0*.py"):
        app = path.parts[-3]
        if path.stem[:4] > RELEASED.get(app, ""):
            yield app, importlib.import_module(f"{app}.migrations.{path.stem}")


def wrongs(app: str, operation: Operation, *, has_note: bool, is_alone: bool) -> Iterator[str]:
    what: Any = operation
    big = (app, getattr(what, "model_name", "").lower()) in BIG
    if isinstance(operation, migrations.AddField):
        field = operation.field
        is_free = field.null or field.db_default is not NOT_PROVIDED or field.many_to_many
        if not is_free:
            yield f"{operation.name}: old code inserts rows without it: null=True, or a db_default"
        if field.unique or (big and field.db_index and not isinstance(field, models.ForeignKey)):
            yield f"{operation.name}: its index locks the table while it is built: add it by AddIndexGently"
        if big and isinstance(field, models.ForeignKey) and field.db_index:
            yield f"{operation.name}: say db_index=False, and add an index by AddIndexGently"
    elif isinstance(operation, AddIndexConcurrently):
        if not is_alone:
            yield "AddIndexGently: alone in its migration, with atomic = False"
    elif isinstance(operation, migrations.AddIndex) and big:
        yield f"{operation.index.name}: locks a big table while it is built: AddIndexGently"
    elif isinstance(operation, UNSAFE) and not has_note:
        yield f"{operation.describe()}: old code may still need it as it was; note why not: {TWO_STEPS}…"


def wrongs_of(app: str, module: Any) -> list[str]:
    migration = module.Migration
    is_alone = len(migration.operations) == 1 and migration.atomic is False
    has_note = TWO_STEPS in inspect.getsource(module)
    return [
        wrong
        for operation in migration.operations
        for wrong in wrongs(app, operation, has_note=has_note, is_alone=is_alone)
    ]


def test_old_code_runs_on_what_migrations_since_the_release_make() -> None:
    since = list(migrations_since())
    assert since
    found = {module.__name__: wrong for app, module in since if (wrong := wrongs_of(app, module))}
    assert not found


TEXT = models.TextField
AN_INDEX = models.Index(fields=["asked_at"], name="i")
REFUSED: list[Operation] = [
    migrations.AddField("turn", "mood", TEXT()),
    migrations.AddField("turn", "mood", TEXT(default="")),
    migrations.AddField("turn", "mood", TEXT(null=True, db_index=True)),
    migrations.AddField("session", "mood", TEXT(null=True, unique=True)),
    migrations.AddField("turn", "other", models.ForeignKey("agents.Agent", models.CASCADE, null=True)),
    migrations.RenameField("turn", "question", "text"),
    migrations.RemoveField("turn", "question"),
    migrations.AlterField("turn", "question", models.CharField(max_length=3)),
    migrations.DeleteModel("Turn"),
    migrations.AddIndex("turn", AN_INDEX),
    migrations.RunSQL("SELECT 1"),
]
ALLOWED: list[Operation] = [
    migrations.AddField("turn", "mood", TEXT(null=True)),
    migrations.AddField("turn", "mood", TEXT(default="", db_default="")),
    migrations.CreateModel("Mood", [("id", models.BigAutoField(primary_key=True))]),
    migrations.AddIndex("agent", AN_INDEX),
]


def test_what_old_code_trips_over_is_refused() -> None:
    for operation in REFUSED:
        assert list(wrongs("agents", operation, has_note=False, is_alone=True)), operation


def test_what_it_does_not_is_allowed() -> None:
    for operation in ALLOWED:
        assert not list(wrongs("agents", operation, has_note=False, is_alone=False)), operation


def test_a_gentle_index_is_alone_in_its_migration() -> None:
    gentle = AddIndexConcurrently("turn", AN_INDEX)
    assert list(wrongs("agents", gentle, has_note=False, is_alone=False))
    assert not list(wrongs("agents", gentle, has_note=False, is_alone=True))
