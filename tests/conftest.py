"""The hubs that tests talk to: real processes, started when first needed, one set for each pytest process."""

import functools
import itertools
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.signals import setting_changed
from django.db import connection, transaction
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

from hub.apps import inject_settings
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import SQLITE_FILE, DistributedStorages, EmbeddedStorages, HubStorage, MakeStorage
from lab.servers import running_servers
from tests.templates import kept

LONGEST_CALL_S = 20.0
LOCK_WAIT_S = 60.0  # tests in process wait for SQLite's lock, however busy the disk is
SHORT_LOCK_WAIT_S = 0.2
BESIDE_OTHERS = 3  # times as long beside other workers, whose tests run hubs on the same cores
HOMES = ["embedded", pytest.param("grown", marks=[pytest.mark.slow, pytest.mark.distributed])]
# Tests of what a surface does with a request: the same code runs on both databases. On PostgreSQL they are `deep`.
DEEP_ON_POSTGRESQL = {
    "chat/test_completions.py", "chat/test_responses.py", "malformed/test_malformed.py",
    "mcp/test_bad_input.py", "mcp/test_tools.py", "openclaw/test_accounts.py", "openclaw/test_boundary.py",
    "openclaw/test_card_and_routes.py", "openclaw/test_files.py", "openclaw/test_follow_ups.py",
    "openclaw/test_sends.py",
    "operators/test_cli_frames.py", "operators/test_peers.py", "operators/test_prompt.py",
    "surfaces/test_agno.py", "surfaces/test_card_renderings.py",
    "surfaces/test_card_signatures.py", "surfaces/test_cards.py",
    "surfaces/test_catalogs.py", "surfaces/test_channel_frames.py", "surfaces/test_denials.py",
    "surfaces/test_hub_dialect.py", "surfaces/test_keepalive.py", "tenancy/test_foreign_hands.py",
    "tenancy/test_matrix.py", "tenancy/test_pages.py", "tenancy/test_token_surfaces.py",
    "v1/test_conversations.py", "v1/test_direct.py", "v1/test_sending.py", "v1/test_usage.py",
}  # fmt: skip
OF_THE_SCHEMA = {"django_content_type", "auth_permission"}  # rows that migrations make, the same for all tests


def pytest_configure() -> None:
    """Give the apps their settings anew whenever a test changes one by pytest-django's `settings`.

    Hypothesis measures no time: other workers run on the same cores.
    """
    setting_changed.connect(_inject_settings)
    settings.register_profile("beside others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("beside others")


def _inject_settings(**_: object) -> None:
    inject_settings()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that only `make test-deep` runs."""
    listed = {Path(__file__).parent / name for name in DEEP_ON_POSTGRESQL}
    for item in items:
        if item.path in listed and item.get_closest_marker("distributed"):
            item.add_marker(pytest.mark.deep)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that passed but took longer than one of `make test` may."""
    report = yield
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    limit_s = longest_call_s(os.getloadavg()[0], os.cpu_count() or 1, workers)
    is_late = report.when == "call" and report.passed and call.duration > limit_s
    if is_late and item.get_closest_marker("deep") is None:
        report.outcome = "failed"
        report.longrepr = f"took {call.duration:.0f} s of {limit_s:.0f}: split it, or mark it `deep`"
    return report


def longest_call_s(load: float, cores: int, workers: int) -> float:
    """The longest time of a test: LONGEST_CALL_S alone on an idle machine, more beside other work."""
    return LONGEST_CALL_S * (BESIDE_OTHERS if workers > 1 else 1) * max(1.0, load / cores)


@pytest.fixture(scope="session")
def distributed_storages() -> Iterator[DistributedStorages]:
    """A running PostgreSQL and Redis, and fresh homes on them."""
    with running_servers(is_durable=False, copy_of=kept("grown", DistributedStorages.make_template)) as servers:
        yield DistributedStorages(servers)


@pytest.fixture(scope="session")
def embedded_storages() -> EmbeddedStorages:
    """Fresh homes in folders."""
    return EmbeddedStorages(kept("embedded", EmbeddedStorages.make_template))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests in process have a database that has its tables already; on PostgreSQL, `nested.py` made it.

    On SQLite it is a file, as in life: SQLite in memory locks whole tables between threads and never waits.
    """
    connection.settings_dict["TEST"]["MIGRATE"] = False
    if connection.vendor == "sqlite":
        homes: EmbeddedStorages = request.getfixturevalue("embedded_storages")
        file = tmp_path_factory.mktemp("in-process") / SQLITE_FILE
        shutil.copy2(homes.template / SQLITE_FILE, file)
        connection.settings_dict["TEST"]["NAME"] = str(file)
        connection.settings_dict["OPTIONS"]["timeout"] = LOCK_WAIT_S
    TransactionTestCase._fixture_teardown = lambda _: _empty()


def _empty() -> None:
    """Empty the tables after a test that committed, in a small part of the time that Django's own way takes.

    The rows of the schema stay, which Django deletes and makes anew; tables without rows are left alone.
    """
    with connection.cursor() as cursor:
        cursor.execute(_tables_with_rows())
        full = cursor.fetchall()
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # All tables are emptied: neither the order nor what refers to a row matters.
            cursor.execute("SET LOCAL session_replication_role = replica")
        for (table,) in full:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


@functools.cache
def _tables_with_rows() -> str:
    """The query for the names of the tables that a test may have filled."""
    tables = sorted(set(connection.introspection.django_table_names(only_existing=True)) - OF_THE_SCHEMA)
    named = ((table, connection.ops.quote_name(table)) for table in tables)
    return " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quoted})" for name, quoted in named)


@pytest.fixture
def short_lock_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """New connections to SQLite wait only briefly for a lock: the test holds it on purpose."""
    if connection.vendor == "sqlite":
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", SHORT_LOCK_WAIT_S)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Django takes the database as it is."""
    return True


@pytest.fixture(scope="session")
def make_storage(
    request: pytest.FixtureRequest, embedded_storages: EmbeddedStorages, tmp_path_factory: pytest.TempPathFactory
) -> MakeStorage:
    """A new home of the named kind: all tables are there, and no row of a user."""
    numbers = itertools.count()

    def make(name: str) -> HubStorage:
        folder = tmp_path_factory.mktemp(f"{name}-{next(numbers)}") / "data"
        if name == "embedded":
            return embedded_storages.new(folder)
        grown: DistributedStorages = request.getfixturevalue("distributed_storages")
        return grown.new(folder)

    return make


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, make_storage: MakeStorage) -> HubStorage:
    """A new home, once of each kind."""
    return make_storage(request.param)


@pytest.fixture
def start_hub() -> Iterator[StartHub]:
    """Starts hubs of one test's own; they end with it."""
    started: list[HubProcess] = []

    def start(home: HubStorage, **options: Any) -> HubProcess:
        started.append(HubProcess.start(home, **options))
        return started[-1]

    yield start
    for hub in started:
        hub.stop()


def _serving(home: HubStorage, **options: Any) -> Iterator[HubProcess]:
    hub = HubProcess.start(home, **options)
    yield hub
    hub.stop()


@pytest.fixture(scope="session")
def embedded_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite."""
    yield from _serving(make_storage("embedded"))


@pytest.fixture(scope="session")
def short_wait_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite that waits 2 s for a reply."""
    yield from _serving(make_storage("embedded"), REPLY_WAIT_S=2)


@pytest.fixture(scope="session")
def two_process_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """Two processes on PostgreSQL and Redis."""
    yield from _serving(make_storage("grown"), processes=2)


@pytest.fixture(params=HOMES, scope="session")
def hub(request: pytest.FixtureRequest) -> HubProcess:
    """A hub of each kind; on the grown one a test sees two processes."""
    name = {"embedded": "embedded_hub", "grown": "two_process_hub"}[request.param]
    serving: HubProcess = request.getfixturevalue(name)
    return serving


@pytest.fixture(params=HOMES, scope="session")
def sending_hub(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub of each kind that may send on this machine; the grown one has two processes and a worker."""
    is_grown = request.param == "grown"
    home = make_storage(request.param)
    yield from _serving(home, processes=1 + is_grown, worker=is_grown, WEBHOOK_ALLOW_PRIVATE=1)


@pytest.fixture
def alice(hub: HubProcess) -> str:
    """A caller's token."""
    return hub.mint("alice", "session")


@pytest.fixture
def bob(hub: HubProcess) -> str:
    """Another caller's token."""
    return hub.mint("bob", "session")
