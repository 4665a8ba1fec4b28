"""Bills: made once of the charges of past days, sent once to an invoicer, whatever fails in between."""

import logging
from datetime import UTC, date, datetime, time, timedelta

import pytest
from django.db.models import Sum

from agnt.models import Invoice, Network, UsageEvent
from agnt.service.invoicers import Bill, BillRefused, InvoicerDown
from agnt.service.invoices import BatchResult, allow_again, make_invoices, mark_sent, run_batch
from kit.clock import db_now
from tests.agnt import network_rows
from tests.agnt.network_rows import charged, list_invoices, network_of, unbilled_day
from tests.racing import at_once
from webhooks.service.outbox import pause_sending, resume_sending

pytestmark = pytest.mark.django_db
network = network_rows.network


class Ledger:
    """An invoicer that keeps bills by their key, and fails as a test says."""

    remembers: timedelta | None = timedelta(hours=23)

    def __init__(self) -> None:
        self.bills: dict[str, Bill] = {}
        self.sent: list[str] = []
        self.failures: dict[str, Exception] = {}

    def send(self, bill: Bill) -> str:
        if failure := self.failures.get(bill.customer):
            raise failure
        self.sent.append(bill.customer)
        self.bills[bill.idempotency_key] = bill
        return f"bill-{bill.number}"


def check_exact() -> None:
    """Each invoice has what its charges add up to."""
    for one in Invoice.objects.annotate(cents=Sum("events__amount_cents")):
        assert (one.total_cents, one.count) == (one.cents, one.events.count())


def test_each_customer_has_a_bill_for_each_day_that_is_over(network: Network) -> None:
    charged(network, "acme", 2, 2, 2, 1)
    charged(network, "bolt", 2, 0)
    other = network_of("bo")
    charged(other, "acme", 2)
    invoicer = Ledger()
    assert run_batch(invoicer) == BatchResult(made=4, sent=4)
    assert list_invoices() == [
        ("acme", 2, 75, "sent"),
        ("acme", 2, 25, "sent"),
        ("bolt", 2, 25, "sent"),
        ("acme", 1, 25, "sent"),
    ]
    assert UsageEvent.objects.filter(invoice=None).count() == 1  # today's
    assert len(invoicer.bills) == 4  # a key for each network, customer and day
    check_exact()


def test_a_second_run_sends_nothing(network: Network) -> None:
    charged(network, "acme", 2, 1)
    invoicer = Ledger()
    run_batch(invoicer)
    assert run_batch(invoicer) == BatchResult()
    assert invoicer.sent == ["acme", "acme"]
    assert all(one.external_id == f"bill-{one.pk}" and one.sent_at for one in Invoice.objects.all())


def test_a_day_is_billed_ten_minutes_after_its_end(network: Network) -> None:
    charged(network, "acme", 1)
    midnight = datetime.combine(unbilled_day(), time(), tzinfo=UTC)
    assert make_invoices(midnight + timedelta(minutes=9)) == 0
    assert make_invoices(midnight + timedelta(minutes=11)) == 1


def test_a_late_charge_goes_on_a_later_bill_and_never_on_one_that_was_made(network: Network) -> None:
    charged(network, "acme", 3)
    invoicer = Ledger()
    run_batch(invoicer)
    charged(network, "acme", 3, 3)
    assert run_batch(invoicer) == BatchResult(made=1, sent=1)
    assert list_invoices() == [("acme", 3, 25, "sent"), ("acme", 1, 50, "sent")]
    charged(network, "acme", 3)
    assert run_batch(invoicer) == BatchResult()  # it waits for the end of today
    assert make_invoices(db_now() + timedelta(days=1)) == 1
    check_exact()
    assert not UsageEvent.objects.filter(invoice=None).exists()


def test_one_that_is_refused_leaves_the_others(network: Network) -> None:
    for customer in ("acme", "bolt", "cord"):
        charged(network, customer, 1)
    invoicer = Ledger()
    invoicer.failures["bolt"] = BillRefused("no such customer")
    assert run_batch(invoicer) == BatchResult(made=3, sent=2, refused=1)
    assert Invoice.objects.get(state="open").tried_at is None  # it is known not to have arrived
    del invoicer.failures["bolt"]
    assert run_batch(invoicer) == BatchResult(sent=1)
    assert sorted(invoicer.sent) == ["acme", "bolt", "cord"]


def test_an_invoicer_that_is_down_leaves_the_rest_for_the_next_run(network: Network) -> None:
    for customer in ("acme", "bolt", "cord"):
        charged(network, customer, 1)
    invoicer = Ledger()
    invoicer.failures["bolt"] = InvoicerDown("no answer")
    assert run_batch(invoicer) == BatchResult(made=3, sent=1)
    assert [one[3] for one in list_invoices()] == ["sent", "open", "open"]
    invoicer.failures.clear()
    assert run_batch(invoicer) == BatchResult(sent=2)
    assert invoicer.sent == ["acme", "bolt", "cord"]


def test_what_may_have_arrived_before_the_invoicer_forgot_it_waits_for_an_operator(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    charged(network, "acme", 1)
    invoicer = Ledger()
    invoicer.failures["acme"] = InvoicerDown("no answer")
    run_batch(invoicer)
    invoicer.failures.clear()
    Invoice.objects.update(tried_at=db_now() - timedelta(hours=24))
    with caplog.at_level(logging.ERROR):
        assert run_batch(invoicer) == BatchResult(uncertain=1)
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == ["agnt.invoice_uncertain"]
    assert not invoicer.sent
    assert allow_again(Invoice.objects.get().pk)
    assert run_batch(invoicer) == BatchResult(sent=1)
    assert not allow_again(Invoice.objects.get().pk)
    assert not mark_sent(Invoice.objects.get().pk, "elsewhere")


def test_a_restored_copy_sends_no_bill_until_sending_is_resumed(network: Network) -> None:
    charged(network, "acme", 1)
    invoicer = Ledger()
    pause_sending("a copy")
    assert run_batch(invoicer) == BatchResult()
    assert not Invoice.objects.exists()
    resume_sending()
    assert run_batch(invoicer) == BatchResult(made=1, sent=1)


@pytest.mark.django_db(transaction=True)
def test_runs_at_once_make_and_count_each_bill_once(network: Network) -> None:
    for customer in ("acme", "bolt", "cord"):
        charged(network, customer, 2, 2, 1)
    invoicer = Ledger()
    results = at_once(*[lambda: run_batch(invoicer)] * 3)
    assert (
        sum(one.sent for one in results)
        == Invoice.objects.filter(state="sent").count()
        == len(invoicer.bills)
        == 6
    )
    assert sum(bill.total_cents for bill in invoicer.bills.values()) == 9 * 25
    check_exact()


def test_the_key_of_a_bill_never_changes() -> None:
    bill = Bill(
        number=1, network="agnt-1", customer="cus_1", day=date(2026, 4, 12), total_cents=25,
        read_lines=lambda: iter(()),
    )  # fmt: skip
    assert bill.idempotency_key == "19d8c962-f94c-558f-b19a-567f26c84e0d"
