"""The contract of webhooks and pushes once more, on PostgreSQL, and that of mails."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED


def test_what_is_sent_keeps_its_contract_on_postgresql(distributed_storages: DistributedStorages) -> None:
    files = ("tests/webhooks", "tests/pushes/test_rows.py", "tests/native/test_alerts.py")
    pass_on_postgresql(distributed_storages, 505, "-m", "deliveries", *files)
