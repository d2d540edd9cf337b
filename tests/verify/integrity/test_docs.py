"""The table of rules in the documents is the register."""

from pathlib import Path

from gametape.verify.integrity import all_rules  # noqa: F401 - registers them
from gametape.verify.integrity.registry import FAMILIES, RULES

DOCUMENT = Path(__file__).parents[3] / "docs" / "integrity.md"


def table() -> str:
    order = {family: index for index, family in enumerate(FAMILIES)}
    ordered = sorted(RULES.values(), key=lambda rule: (order[rule.id.split(".")[0]], rule.id))
    lines = ["| rule | over | severity | accuses when | why it is precise |", "|---|---|---|---|---|"]
    lines += [
        f"| `{rule.id}` | {rule.input_kind} | {rule.severity} | {rule.description} | {rule.false_positive_guard} |"
        for rule in ordered
    ]
    return "\n".join(lines)


def test_the_table_is_current() -> None:
    assert DOCUMENT.read_text().partition("<!-- rules -->\n")[2].strip() == table()


def test_every_family_has_rules() -> None:
    assert {rule.split(".")[0] for rule in RULES} == set(FAMILIES)
