"""Chooses the invoicer by the settings."""

from importlib import import_module

from agnt.invoicing.csv_files import CsvInvoicer
from agnt.invoicing.port import Invoicer
from agnt.settings import get_settings


def make_invoicer() -> Invoicer:
    """Stripe's where a key is set, else files below DATA_DIR."""
    settings = get_settings()
    if not settings.stripe_api_key:
        return CsvInvoicer(settings.invoices_dir)
    module = import_module("agnt.invoicing.stripe_meter")  # the library is large: only where it is used
    chosen: Invoicer = module.StripeInvoicer(
        settings.stripe_api_key, url=settings.stripe_api_url, meter=settings.stripe_meter
    )
    return chosen
