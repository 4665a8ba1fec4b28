"""The ways to send bills: as CSV files, to Stripe, by the command of operators, and by a hub."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command

from agnt import jobs
from agnt.models import Invoice, Network
from agnt.service.invoicers import CsvInvoicer, make_invoicer
from agnt.service.invoices import BatchResult, run_batch
from agnt.service.stripe_meter import StripeInvoicer
from hub.checks import check_invoices
from kit.clock import db_now
from lab import ROOT
from lab.callers import TLS
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage, hub_env, manage
from lab.processes import python, run
from lab.waiting import until
from tests.agnt import network_rows
from tests.agnt.network_rows import booked, charged, list_invoices, noon, venue_of
from tests.agnt.stripe_server import API_KEY, StripeServer, stripe_server

pytestmark = pytest.mark.django_db
network = network_rows.network
METER = "agnt_booking_cents"
# Two old charges of a customer, and what the job runs.
CHARGE = """
from datetime import timedelta
from kit.clock import db_now
from tests.agnt.network_rows import booked, network_of
network = network_of("ana")
for hours in (48, 49):
    at = db_now().replace(hour=12) - timedelta(hours=hours)
    booked(network, at=at, customer="cus_ana")
"""
BILL = """
from agnt.service.invoices import run_batch
from agnt.service.invoicers import make_invoicer
print("sent", run_batch(make_invoicer()).sent, flush=True)
"""
KILLED = "import django; django.setup()" + BILL


@pytest.fixture
def stripe() -> Iterator[StripeServer]:
    with stripe_server() as found:
        yield found


def listed(*arguments: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("agnt_invoices", *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_operator_decides_what_happens_with_bills_that_were_not_sent(
    network: Network, settings: Any, stripe: StripeServer
) -> None:
    settings.STRIPE_API_KEY, settings.STRIPE_API_URL = API_KEY, stripe.url
    for customer in ("key-1", "key-2", "cus_acme"):
        charged(network, customer, 1)
    first, second = listed("--send")
    day = noon(1).date().isoformat()
    assert first == {
        "id": first["id"], "network": "ana", "customer": "key-1", "day": day, "count": 1, "amount_usd": "0.25",
        "triedAt": None,
    }  # fmt: skip
    assert [one["customer"] for one in listed("--sent", str(first["id"]))] == ["key-2"]
    again = ("--again", str(second["id"]))
    with pytest.raises(CommandError, match="already"):
        listed(*again, "--customer", "cus_acme")
    assert [one["customer"] for one in listed(*again, "--customer", "cus_bolt")] == ["cus_bolt"]
    assert listed("--send") == []
    assert sorted(one["payload[stripe_customer_id]"] for one in stripe.requests) == ["cus_acme", "cus_bolt"]
    for wrong in (again, ("--sent", str(first["id"])), ("--sent", "999999")):
        with pytest.raises(CommandError, match="no such bill"):
            listed(*wrong)
    with pytest.raises(CommandError, match="--again"):
        listed("--customer", "cus_bolt")


def test_a_file_has_a_line_for_each_charge(network: Network, tmp_path: Path) -> None:
    venue = venue_of(network)
    bookings = [booked(network, venue=venue, at=noon(1), customer="=cmd()") for _ in range(3)]
    assert run_batch(CsvInvoicer(tmp_path)).sent == 1
    invoice = Invoice.objects.get()
    path = tmp_path / invoice.external_id
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [path]
    assert path.parent.name == invoice.day.isoformat()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["booking_id"] for row in rows] == [str(one.public_id) for one in bookings]
    assert sum(Decimal(row["amount_usd"]) for row in rows) == Decimal("0.75")
    assert {row["customer"] for row in rows} == {"'=cmd()"}  # a spreadsheet does not run it
    assert {row["network"] for row in rows} == {network.service_user.login}
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0


def test_a_file_that_is_written_again_is_the_same(network: Network, tmp_path: Path) -> None:
    charged(network, "acme", 1, 1)
    run_batch(CsvInvoicer(tmp_path))
    path = tmp_path / Invoice.objects.get().external_id
    first = path.read_bytes()
    Invoice.objects.update(state="open", tried_at=db_now() - timedelta(days=9))  # killed before it was marked
    assert run_batch(CsvInvoicer(tmp_path)) == BatchResult(sent=1)
    assert path.read_bytes() == first
    assert len([one for one in tmp_path.rglob("*") if one.is_file()]) == 1


def test_a_folder_that_cannot_be_written_leaves_the_bill(network: Network, tmp_path: Path) -> None:
    charged(network, "acme", 1)
    in_the_way = tmp_path / "invoices"
    in_the_way.write_text("a file")
    assert run_batch(CsvInvoicer(in_the_way)) == BatchResult(made=1)
    in_the_way.unlink()
    assert run_batch(CsvInvoicer(in_the_way)) == BatchResult(sent=1)


def test_files_are_the_default_and_a_key_switches_to_stripe(
    network: Network, settings: Any, tmp_path: Path
) -> None:
    settings.INVOICES_DIR = tmp_path
    assert isinstance(make_invoicer(), CsvInvoicer)
    charged(network, "acme", 1)
    assert jobs.send_invoices() == 1
    assert list(tmp_path.rglob("*.csv"))
    settings.STRIPE_API_KEY = API_KEY
    assert isinstance(make_invoicer(), StripeInvoicer)


def test_a_key_without_the_library_of_stripe_says_what_to_install(
    network: Network, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.STRIPE_API_KEY = API_KEY
    monkeypatch.setitem(sys.modules, "stripe", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "agnt.service.stripe_meter")
    with pytest.raises(CommandError, match=re.escape("pip install 'clawbridge-hub[stripe]'")):
        call_command("agnt_invoices", "--send")
    assert jobs.send_invoices() == 0
    (record,) = [one for one in caplog.records if one.message == "agnt.invoicer_down"]
    assert "STRIPE_API_KEY is set" in record.__dict__["reason"]
    assert [message.id for message in check_invoices()] == ["clawbridge.E010"]
    assert not Invoice.objects.filter(state=Invoice.State.SENT).exists()


def test_stripe_gets_one_meter_event_for_each_customer_and_day(network: Network, stripe: StripeServer) -> None:
    charged(network, "cus_acme", 2, 2, 1)
    charged(network, "cus_bolt", 1)
    invoicer = StripeInvoicer(API_KEY, url=stripe.url, meter=METER)
    assert run_batch(invoicer) == BatchResult(made=3, sent=3)
    assert stripe.totals() == {
        ("cus_acme", str(int(noon(2).timestamp()))): 50,
        ("cus_acme", str(int(noon(1).timestamp()))): 25,
        ("cus_bolt", str(int(noon(1).timestamp()))): 25,
    }
    assert {one["event_name"] for one in stripe.events.values()} == {METER}
    assert set(stripe.events) == set(Invoice.objects.values_list("external_id", flat=True))
    assert run_batch(invoicer) == BatchResult()
    assert len(stripe.requests) == 3


def test_an_answer_of_stripe_that_is_lost_does_not_count_twice(network: Network, stripe: StripeServer) -> None:
    charged(network, "cus_acme", 1)
    stripe.interfere = lambda _: 502  # it counted, and the answer says otherwise
    invoicer = StripeInvoicer(API_KEY, url=stripe.url, meter=METER)
    run_batch(invoicer)
    stripe.interfere = lambda _: 0
    run_batch(invoicer)
    assert [one[3] for one in list_invoices()] == ["sent"]
    assert len(stripe.events) == 1
    assert len(stripe.requests) >= 2


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 429, 500, 503])
def test_what_stripe_answers_decides_whether_the_bill_may_have_arrived(
    network: Network, stripe: StripeServer, status: int
) -> None:
    charged(network, "cus_acme", 1)
    charged(network, "cus_bolt", 1)
    stripe.refuse = lambda one: status if one["payload[stripe_customer_id]"] == "cus_acme" else 0
    result = run_batch(StripeInvoicer(API_KEY, url=stripe.url, meter=METER))
    is_down = status in (401, 409, 429, 500, 503)
    assert (result.sent, result.refused) == ((0, 0) if is_down else (1, 1))
    left = Invoice.objects.get(customer="cus_acme")
    assert (left.state, left.tried_at is not None) == ("open", is_down)


def test_a_customer_that_stripe_cannot_have_is_refused_here(
    network: Network, stripe: StripeServer, caplog: pytest.LogCaptureFixture
) -> None:
    charged(network, "key-1234", 1)
    charged(network, "cus_bolt", 1)
    result = run_batch(StripeInvoicer(API_KEY, url=stripe.url, meter=METER))
    assert (result.sent, result.refused) == (1, 1)
    assert [one["payload[stripe_customer_id]"] for one in stripe.requests] == ["cus_bolt"]
    (record,) = [one for one in caplog.records if one.message == "agnt.invoice_refused"]
    assert "id of a customer in Stripe" in record.reason  # type: ignore[attr-defined]


def test_a_stripe_that_is_away_or_knows_another_key_leaves_everything(
    network: Network, stripe: StripeServer
) -> None:
    charged(network, "cus_acme", 1)
    assert run_batch(StripeInvoicer("sk_of_another", url=stripe.url, meter=METER)) == BatchResult(made=1)
    assert run_batch(StripeInvoicer(API_KEY, url="http://127.0.0.1:9", meter=METER)) == BatchResult()
    assert run_batch(StripeInvoicer(API_KEY, url=stripe.url, meter=METER)) == BatchResult(sent=1)


@pytest.mark.slow
def test_a_program_killed_between_sending_and_marking_sends_nothing_twice(
    make_storage: MakeStorage, stripe: StripeServer
) -> None:
    home = make_storage("embedded")
    settings = {"DJANGO_SETTINGS_MODULE": "hub.settings", "STRIPE_API_KEY": API_KEY, "STRIPE_API_URL": stripe.url}
    env = hub_env({**home.env, **settings})
    manage(env, "shell", "-c", CHARGE)
    program = subprocess.Popen(python("-c", KILLED), env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None

    def kill(_: object) -> int:
        os.kill(program.pid, signal.SIGKILL)
        program.wait(30)
        return 0

    stripe.interfere = kill
    with program.stdout as printed:
        assert printed.read() == ""  # it was killed before it could say how many
    assert program.wait(30) == -signal.SIGKILL
    assert len(stripe.events) == 1
    stripe.interfere = lambda _: 0
    assert [manage(env, "shell", "-c", BILL).split()[-1] for _ in range(2)] == ["1", "0"]
    assert len(stripe.events) == 1
    assert list(stripe.totals().values()) == [50]
    assert len(stripe.requests) == 2


@pytest.mark.slow
def test_a_hub_bills_past_days_by_itself(make_storage: MakeStorage, start_hub: StartHub) -> None:
    home = make_storage("embedded")
    manage(home.env, "shell", "-c", CHARGE)
    hub = start_hub(home)
    files = home.folder / "invoices"
    until(lambda: list(files.rglob("*.csv")), "the job has written the bill", within_s=30)
    (path,) = files.rglob("*.csv")
    assert len(path.read_text().splitlines()) == 3

    def figures() -> list[str]:
        return httpx.get(f"{hub.url}/metrics", verify=TLS).text.splitlines()

    until(lambda: "agnt_open_invoices 0.0" in figures(), "the bill is marked", within_s=30)
    assert {'agnt_metering_drift{kind="uncharged"} 0.0', "a2a_metered_events_total 0.0"} <= set(figures())


def test_the_library_of_stripe_is_imported_with_its_key_only() -> None:
    check = "from agnt import jobs; jobs.make_invoicer(); import sys; print('stripe' in sys.modules)"
    script = f"import django; django.setup(); {check}"
    settings = {"DATA_DIR": os.environ["DATA_DIR"], "DJANGO_SETTINGS_MODULE": "hub.settings"}
    assert run(python("-c", script), hub_env(settings)).strip() == "False"
