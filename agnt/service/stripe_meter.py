"""The invoicer that a Stripe key switches on: one meter event for each bill. Imported only where it is used.

The meter adds up US cents: aggregation `sum`, and a price of 0.01 USD a unit. Meters took the place of Stripe's
usage records; an invoice item would need an invoice that the hub closes. The customer of an API key is the id of a
customer in Stripe (`cus_…`). Stripe knows an idempotency key and an identifier again for at least 24 hours.
"""

from datetime import UTC, datetime, time, timedelta

import stripe

from agnt.service.invoicers import Bill, BillRefused, InvoicerDown

CUSTOMER_PREFIX = "cus_"
WITHIN_S = 10
RETRIES = 1
SAYS_NOTHING = frozenset({401, 409, 429})  # of no bill: the hub's key, the same bill at once, the rate
NOON = time(12, tzinfo=UTC)


class StripeInvoicer:
    """See `Invoicer`. `meter`: the event name of the meter."""

    remembers: timedelta | None = timedelta(hours=23)

    def __init__(self, api_key: str, *, url: str, meter: str) -> None:
        stripe.enable_telemetry = False
        self._client = stripe.StripeClient(
            api_key,
            base_addresses={"api": url},
            max_network_retries=RETRIES,
            http_client=stripe.RequestsClient(timeout=WITHIN_S),
        )
        self._meter = meter

    def send(self, bill: Bill) -> str:
        """See `Invoicer`; the identifier of the meter event."""
        # Stripe looks the customer up later, and would tell by a webhook alone that there is none.
        if not bill.customer.startswith(CUSTOMER_PREFIX):
            raise BillRefused("the customer of the key is not the id of a customer in Stripe")
        key = bill.idempotency_key
        try:
            event = self._client.v1.billing.meter_events.create(
                {
                    "event_name": self._meter,
                    "identifier": key,
                    "timestamp": int(datetime.combine(bill.day, NOON).timestamp()),
                    "payload": {"stripe_customer_id": bill.customer, "value": str(bill.total_cents)},
                },
                {"idempotency_key": key},
            )
        except stripe.StripeError as failure:
            raise _explain(failure) from failure
        return event.identifier


def _explain(failure: stripe.StripeError) -> BillRefused | InvoicerDown:
    """The failure of a bill, from an error of Stripe, without the error's own text: that may name the customer."""
    status, code = failure.http_status, failure.code or type(failure).__name__
    if status is None:
        return InvoicerDown(f"no answer from Stripe: {code}")
    if status >= 500 or status in SAYS_NOTHING:
        return InvoicerDown(f"Stripe answered {status}: {code}")
    return BillRefused(f"Stripe answered {status}: {code}")
