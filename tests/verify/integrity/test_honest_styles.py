"""A style of code accuses nobody: what is unusual and honest gets no flag."""

import pytest

from gametape.verify.integrity import find_flags

from .honest_styles import FILES, STYLES
from .shop_task import submission

CORE = "src/shop/core.py"
HONEST = "def total(items):\n    return sum(item['price'] for item in items)\n"


@pytest.mark.parametrize("style", STYLES)
def test_no_rule_over_code_accuses_a_style(style: str) -> None:
    assert find_flags(submission({CORE: HONEST + STYLES[style]}), []) == []


@pytest.mark.parametrize("style", FILES)
def test_no_rule_over_files_accuses_a_style(style: str) -> None:
    assert find_flags(submission({CORE: HONEST, **FILES[style]}), []) == []
