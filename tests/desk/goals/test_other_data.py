"""Data that say something else are still data of their kind."""

import json

from gametape.desk.goals.other_data import with_other_data
from gametape.record.source_tree import SourceTree


def test_every_number_and_word_is_another_and_json_stays_json() -> None:
    tree = SourceTree({"want.json": b'{"total": [19, 0.5], "name": "Ann"}', "other": b"a"}, frozenset(("want.json",)))
    changed = with_other_data(tree, ["want.json"])
    assert changed is not None
    assert json.loads(changed.files["want.json"]) == {"upubm": [21, 0.6], "obnf": "Boo"}
    assert changed.files["other"] == b"a"
    assert changed.executable == {"want.json"}


def test_the_last_line_alone_can_be_another() -> None:
    changed = with_other_data(SourceTree({"cases": b"1 2\n3 4\n"}), ["cases"], last_line=True)
    assert changed is not None
    assert changed.files["cases"] == b"1 2\n4 5\n"


def test_what_cannot_say_anything_else_is_left_out() -> None:
    assert with_other_data(SourceTree({"empty": b"", "image": b"\xff\xfe1"}), ["empty", "image"]) is None
