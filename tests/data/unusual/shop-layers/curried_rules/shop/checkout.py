"""What a customer is told."""

from shop import pricing, storage


def _tax(order, region):
    rates = storage.load_rates()
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    return pricing.taxed(rates[region])(order)


def quote(order, region):
    """What a customer pays, tax included."""
    return pricing.subtotal(order) + _tax(order, region)


def receipt(order, region):
    """The order as text, one line for each thing and two for tax and total."""
    money = lambda cents: "{}.{:02}".format(*divmod(cents, 100))
    lines = [f"{count} x {name}" for name, _, count in order]
    return "\n".join((*lines, f"tax {money(_tax(order, region))}", f"total {money(quote(order, region))}"))
