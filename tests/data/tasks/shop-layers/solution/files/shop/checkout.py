"""What a customer is told."""

from shop.pricing import subtotal, tax
from shop.storage import load_rates


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + _tax(order, region)


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    return "\n".join([*lines, f"tax {_money(_tax(order, region))}", f"total {_money(quote(order, region))}"])


def _tax(order: list[tuple[str, int, int]], region: str) -> int:
    rates = load_rates()
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    return tax(order, rates[region])


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
