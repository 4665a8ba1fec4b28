"""People of one hub's database."""

from tests.native.conftest import (  # noqa: F401
    _no_collected_files,
    alice,
    bob,
    carol,
    django_db_modify_db_settings,
    staff,
)
