"""What a customer is told."""

from shop.pricing import subtotal, tax
from shop.storage import load_rates


def _tax(order, region):
    rates = load_rates()
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    return tax(order, rates[region])


def quote(order, region):
    """What a customer pays, tax included."""
    return subtotal(order) + _tax(order, region)


def receipt(order, region):
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    return "\n".join([*lines, f"tax {_tax(order, region) / 100:.2f}", f"total {quote(order, region) / 100:.2f}"])
