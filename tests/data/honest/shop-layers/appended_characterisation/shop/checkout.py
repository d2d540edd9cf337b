"""What a customer is told."""

from shop.money import Money
from shop.pricing import subtotal
from shop.storage import load_rates


def _bill(order, region) -> tuple[Money, Money]:
    rates = load_rates()
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    net = Money(subtotal(order))
    tax = net.percent(rates[region])
    return tax, net + tax


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return _bill(order, region)[1]


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    tax, total = _bill(order, region)
    return "\n".join([*(f"{count} x {name}" for name, _, count in order), f"tax {tax:m}", f"total {total:m}"])
