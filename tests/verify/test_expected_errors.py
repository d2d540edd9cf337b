"""What tests look for in errors."""

import re

import pytest

from gametape.verify.expected_errors import texts_looked_for, texts_of_errors

_FILE = """import re
import pytest

SAID = "so many"


def test_it():
    with pytest.raises(Refused, match={0}):
        refuse("given")
"""


@pytest.mark.parametrize(
    "pattern",
    ["r'line \\d+: (?:bad|odd) [a-z]+'", "re.escape('a (b)')", "'^none$'", "'no.*text'", "SAID", "r'at \\(3, 4\\)\\.'"],
)
def test_a_text_is_found_that_the_pattern_matches(pattern: str) -> None:
    texts = texts_of_errors([_FILE.format(pattern).encode()])
    compiled = eval(pattern, {"re": re, "SAID": "so many"})
    assert any(re.search(compiled, text) for text in texts), texts


def test_texts_of_comparisons_with_an_error_count_and_others_do_not() -> None:
    text = b"def test_it():\n    assert 'wrong' in str(caught.value)\n    assert refuse('x') == 'right'\n"
    text += b"    with self.assertRaisesRegex(Refused, 'worse'):\n        refuse('y')\n"
    assert sorted(texts_of_errors([text])) == ["worse", "wrong"]


def test_texts_are_found_that_tests_look_for_in_answers() -> None:
    test = b"""import re

def test_it(self):
    assert "total: 7" in summary(given)
    self.assertIn("bun", summary(given))
    assert re.search(r"items: \\d", summary(given))
    assert "said" == summary(given)
"""
    assert {"total: 7", "bun", "items: 1"} <= {*texts_looked_for([test])}
    assert "said" not in texts_looked_for([test])
