"""People of one hub's database."""

from tests.native.conftest import alice, bob  # noqa: F401
