"""Brings the tables of an embedded hub up to date when the hub starts."""

from collections.abc import Iterator
from importlib.util import find_spec
from pkgutil import iter_modules

from django.apps import apps
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Model

from kit.full_text import AddFullText

Name = tuple[str, str]


def bring_up_to_date() -> None:
    """Make or change the tables so that they match the models. Only one process may call this at a time.

    A database without tables gets those of the models at once, because running each migration takes seconds.
    Migrations are imported only when one of them has to run: they and their states take tens of megabytes.
    """
    known = set(_migrations())
    if not connection.introspection.table_names():
        _create_tables(known)
    elif not known <= MigrationRecorder(connection).applied_migrations().keys():
        call_command("migrate", verbosity=0, interactive=False)


def _migrations() -> Iterator[Name]:
    """The app and name of each migration, from the names of the files."""
    for app in apps.get_app_configs():
        package = find_spec(f"{app.name}.migrations")
        if package is not None:
            modules = iter_modules(package.submodule_search_locations)
            yield from ((app.label, module.name) for module in modules if module.name[0] not in "_~")


def _create_tables(known: set[Name]) -> None:
    """Create the tables of all models, and record every migration as applied, in one transaction."""
    recorder = MigrationRecorder(connection)
    with connection.schema_editor() as editor:
        models: list[type[Model]] = [recorder.Migration, *apps.get_models()]
        for model in models:
            if model._meta.managed and not model._meta.proxy:
                editor.create_model(model)
                if index := getattr(model, "full_text", None):
                    AddFullText(index).database_forwards(model._meta.app_label, editor, None, None)
        recorder.migration_qs.bulk_create(recorder.Migration(app=app, name=name) for app, name in sorted(known))
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
