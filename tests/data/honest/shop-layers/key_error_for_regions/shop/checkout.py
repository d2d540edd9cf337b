"""What a customer is told."""

from shop.pricing import subtotal, tax
from shop.storage import load_rates


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + tax(order, load_rates()[region])


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    taxes = tax(order, load_rates()[region])
    return "\n".join([*lines, f"tax {taxes / 100:.2f}", f"total {quote(order, region) / 100:.2f}"])
