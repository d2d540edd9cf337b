"""What a customer is told."""

from shop.pricing import subtotal, tax
from shop.storage import load_rates


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + tax(order, region, load_rates())


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    amounts = {"tax": tax(order, region, load_rates()), "total": quote(order, region)}
    return "\n".join([*lines, *(f"{name} {cents // 100}.{cents % 100:02}" for name, cents in amounts.items())])
