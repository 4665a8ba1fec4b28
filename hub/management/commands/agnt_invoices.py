"""`manage.py agnt_invoices`: the bills that were not sent, and what an operator decides about them."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import IntegrityError

from agnt.service.invoicers import InvoicerDown, make_invoicer
from agnt.service.invoices import allow_again, list_open, mark_sent, run_batch
from hub.management.command import HubCommand
from kit.clock import iso_or_none
from kit.money import CENT, decimal_usd


class Command(HubCommand):
    help = "List the bills of AGNT bookings that were not sent, one JSON object a line; works while the hub runs."
    refusals = (InvoicerDown,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--send", action="store_true", help="first make and send what is due")
        action.add_argument("--sent", type=int, metavar="ID", help="this bill has arrived: do not send it")
        action.add_argument("--again", type=int, metavar="ID", help="this bill has not arrived: send it")
        parser.add_argument("--customer", default="", help="with --again: to this customer instead")

    def handle(self, *args: Any, **options: Any) -> None:
        """Carry out the decision, then list the bills."""
        if options["customer"] and options["again"] is None:
            raise CommandError("--customer goes with --again")
        if options["send"]:
            run_batch(make_invoicer())
        if options["sent"] is not None and not mark_sent(options["sent"], ""):
            raise CommandError("there is no such bill that was not sent")
        if options["again"] is not None:
            self._allow_again(options["again"], options["customer"])
        for one in list_open():
            shown = {
                "id": one.pk,
                "network": one.network.owner.login,
                "customer": one.customer,
                "day": one.day.isoformat(),
                "count": one.count,
                "amount_usd": decimal_usd(one.total_cents * CENT),
                "triedAt": iso_or_none(one.tried_at),
            }
            self.stdout.write(json.dumps(shown))

    def _allow_again(self, invoice_id: int, customer: str) -> None:
        try:
            is_open = allow_again(invoice_id, customer)
        except IntegrityError:
            raise CommandError("that customer has a bill of this network and day already") from None
        if not is_open:
            raise CommandError("there is no such bill that was not sent")
