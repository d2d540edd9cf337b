"""What a customer is told."""

from shop.pricing import subtotal, tax


def quote(order: list[tuple[str, int, int]], region: str, rates: dict[str, int]) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + tax(order, rates[region])


def receipt(order: list[tuple[str, int, int]], region: str, rates: dict[str, int]) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    return "\n".join([*lines, f"tax {tax(order, rates[region])}", f"total {quote(order, region, rates)}"])
