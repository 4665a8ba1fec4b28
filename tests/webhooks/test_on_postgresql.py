"""The contract of webhooks once more, on PostgreSQL, and that of mails."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED


def test_webhooks_and_mails_keep_their_contract_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(
        distributed_storages, 505, "-m", "deliveries", "tests/webhooks", "tests/native/test_alerts.py"
    )
