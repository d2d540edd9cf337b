"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

from contextvars import ContextVar

rates = ContextVar("rates")
"""The tax rate of each region; whoever asks for a tax sets it first."""


def subtotal(order):
    """The price of an order before tax; ten or more of one thing are five percent off."""
    total = 0
    for _, price, count in order:
        line = price * count
        total += line - (line * 5 // 100 if count > 9 else 0)
    return total


def tax(order, region):
    """The tax on an order, rounded down to whole cents."""
    known = rates.get()
    if region not in known:
        raise ValueError(f"we do not sell in {region}")
    return subtotal(order) * known[region] // 100
