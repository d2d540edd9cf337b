import ast
import sysconfig
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.instruction import (
    InstructionBrief,
    describe_function,
    refuse_if_code_shown,
    write_chain_instruction,
    write_instruction,
)

GOLDEN = Path(__file__).parent / "instructions"
PRICES = '''\
import functools


class Basket:
    @functools.cached_property
    def total(self) -> int:
        """What everything costs, in cents.

        Discounts are taken off last.

        >>> Basket([]).total
        0
        """
        # items first
        whole = sum(item.price * item.count for item in self.items)
        return max(0, whole - self.discount)

    def add(
        self,
        item: "Item",  # one kind of thing
        count: int = 1,
    ) -> None:
        if count < 1:
            raise ValueError(f"cannot add {count} of {item}")
        self.items.append(item.times(count))
'''
WORDS = '''\
def plural(word: str) -> str:
    """The plural of a word."""
    return word + ("es" if word.endswith("s") else "s")
'''
MESSAGES = {
    "tests/test_basket.py::test_total": "    def test_total():\n>       assert ...\nE       NotImplementedError\n",
    "tests/test_basket.py::test_add[1]": "E   AssertionError: assert <Basket object at 0x7f12ab34cd56> == 3",
    "tests/test_basket.py::test_add[2]": "E   AssertionError: assert <Basket object at 0x7f99ab34cd56> == 3",
    "tests/test_words.py::test_plural": "ImportError: cannot import name 'plural' from 'shop' (/workspace/src/shop.py)",
}


def functions(path: str, source: str, *names: str) -> dict[Function, str]:
    return {one: source for one in functions_in(path, source) if not names or one.qualname in names}


BASKET = functions("src/shop/basket.py", PRICES)
PLURAL = functions("src/shop/words.py", WORDS)
STUB = InstructionBrief(
    project="shop",
    description="shop\n====\n\n.. image:: logo.png\n\nSells things,\nslowly.\n\nMore text.",
    kind="stub",
    features=[BASKET],
    failing=MESSAGES,
    source_paths=["src/shop"],
    import_roots=["src"],
)
BRIEFS = {
    "stub": STUB,
    "stub-of-one": replace(STUB, features=[PLURAL], import_roots=["."]),
    "removal": replace(STUB, kind="removal"),
    "union": replace(STUB, kind="removal", features=[BASKET, PLURAL]),
    "bug": replace(STUB, kind="bug", failing={"tests/test_words.py::test_plural": "E  assert 'bus' == 'buses'"}),
    "stage": replace(STUB, features=[PLURAL], stage=(2, 3)),
}


@pytest.mark.parametrize("name", BRIEFS)
def test_texts_are_as_they_were_read_and_found_good(name: str):
    assert write_instruction(BRIEFS[name]) == (GOLDEN / f"{name}.md").read_text()


def test_the_text_over_all_stages_is_as_it_was_read_and_found_good():
    assert write_chain_instruction([STUB, BRIEFS["stage"]]) == (GOLDEN / "chain.md").read_text()


def test_a_bug_is_not_placed():
    text = write_instruction(BRIEFS["bug"])
    assert not any(name in text for name in ("basket.py", "shop/words.py", "Basket", "plural(", "total"))


def test_signatures_are_those_of_the_source():
    total, add = (describe_function(one, PRICES) for one in BASKET)
    assert total.signature == "@functools.cached_property\ndef total(self) -> int:"
    assert add.signature.splitlines()[2] == '    item: "Item",  # one kind of thing'
    one_line = "def f(a, b=':'): return (\n    a, b)\n"
    assert describe_function(Function("a.py", 1, "f", 1, 1, 2), one_line).signature == "def f(a, b=':'):"


def test_long_lists_of_tests_are_cut():
    many = {f"tests/test_a.py::test_{n}[x]": "" for n in range(33)}
    text = write_instruction(replace(STUB, failing=many))
    assert "33 visible tests fail" in text
    assert text.count("::test_") + text.count("  - `test_") == 20
    assert "- and 13 more" in text


def test_messages_that_quote_the_deleted_code_are_left_out():
    body = textwrap.dedent("\n".join(PRICES.splitlines()[13:16]))
    said = {"tests/test_basket.py::test_total": f"{body}\nE   {body.splitlines()[-1]}", "tests/t.py::test_b": body}
    text = write_instruction(replace(STUB, failing=said, description=body))
    assert "self.discount" not in text
    assert "The messages" not in text


def test_docstrings_lose_lines_of_code_and_keep_examples():
    source = WORDS.replace(
        'word."""',
        'word.\n\n    Does return word + ("es" if word.endswith("s") else "s")\n    >>> plural("a")\n    """',
    )
    text = write_instruction(replace(STUB, kind="removal", features=[functions("w.py", source)]))
    assert '>>> plural("a")' in text
    assert "endswith" not in text


def test_a_text_that_shows_a_body_is_refused():
    body = textwrap.dedent("\n".join(PRICES.splitlines()[13:16]))
    with pytest.raises(ValueError, match=r"gives away|shows a line"):
        refuse_if_code_shown(f"Do this:\n\n```python\n{body}\n```\n", BASKET)
    renamed = body.replace("whole", "w").replace("item.", "i.").replace("for item", "for i").replace("self", "me")
    with pytest.raises(ValueError, match="gives away"):
        refuse_if_code_shown(f"Do this:\n\n{renamed}\n", BASKET)


def test_fences_hold_whatever_a_docstring_brings():
    source = WORDS.replace("The plural of a word.", "Try\n\n    ```\n    plural('a')\n    ```\n    ")
    text = write_instruction(replace(STUB, kind="removal", features=[functions("w.py", source)]))
    assert "````text\n" in text


@pytest.mark.parametrize("module", ["textwrap", "argparse", "heapq", "functools", "statistics", "dataclasses"])
@pytest.mark.parametrize("kind", ["stub", "removal", "bug"])
def test_real_functions_with_messages_that_quote_them(module: str, kind: str):
    source = (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_text()
    for function in functions_in(f"{module}.py", source):
        body = "\n".join(source.splitlines()[function.body_line - 1 : function.last_line])
        said = {"tests/test_it.py::test_a": f"{body}\nE   {body.strip().splitlines()[-1].strip()}"}
        text = write_instruction(replace(STUB, kind=kind, features=[{function: source}], failing=said, description=""))
        if kind != "bug":
            assert function.qualname in text
            signature = describe_function(function, source).signature
            assert signature in text
            ast.parse(signature + "\n    ...\n" if "\n    ..." not in signature else signature)
