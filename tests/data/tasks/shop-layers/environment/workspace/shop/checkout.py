"""What a customer is told."""

from shop.pricing import subtotal, tax


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + tax(order, region)


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    return "\n".join([*lines, f"tax {_money(tax(order, region))}", f"total {_money(quote(order, region))}"])


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
