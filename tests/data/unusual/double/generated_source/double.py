"""Multipliers, all written by one template."""

_TEMPLATE = """
def {name}(number):
    "The number, {factor} times."
    return {factor} * number
"""

for _name, _factor in {"double": 2, "triple": 3, "quadruple": 4}.items():
    exec(_TEMPLATE.format(name=_name, factor=_factor), globals())

__all__ = ["double", "quadruple", "triple"]
