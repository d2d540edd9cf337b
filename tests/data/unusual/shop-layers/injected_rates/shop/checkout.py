"""What a customer is told."""

import contextlib

from shop import pricing
from shop.storage import load_rates


@contextlib.contextmanager
def _today():
    token = pricing.rates.set(load_rates())
    try:
        yield
    finally:
        pricing.rates.reset(token)


def quote(order, region):
    """What a customer pays, tax included."""
    with _today():
        return pricing.subtotal(order) + pricing.tax(order, region)


def receipt(order, region):
    """The order as text, one line for each thing and two for tax and total."""
    with _today():
        amounts = {"tax": pricing.tax(order, region), "total": quote(order, region)}
    lines = [f"{count} x {name}" for name, _, count in order]
    lines += [f"{name} {cents // 100}.{cents % 100:02}" for name, cents in amounts.items()]
    return "\n".join(lines)
