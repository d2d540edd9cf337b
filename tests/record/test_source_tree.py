"""Trees laid over each other."""

from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree, read_tree


@pytest.mark.parametrize(
    ("above", "below", "both"),
    [
        ({"a": b"1"}, {"a": b"2", "b": b"3"}, {"a": b"1", "b": b"3"}),
        ({"checks/a.py": b"1"}, {"checks": b"2", "checks.py": b"3"}, {"checks/a.py": b"1", "checks.py": b"3"}),
        ({"a/b/c": b"1"}, {"a/b": b"2", "a/d": b"3"}, {"a/b/c": b"1", "a/d": b"3"}),
        ({"run": b"1"}, {"run/a": b"2", "run/b/c": b"3", "runs": b"4"}, {"run": b"1", "runs": b"4"}),
    ],
)
def test_the_upper_tree_wins_where_one_has_a_file_and_the_other_a_directory(
    above: dict[str, bytes], below: dict[str, bytes], both: dict[str, bytes], tmp_path: Path
) -> None:
    tree = SourceTree(above).overlaid_on(SourceTree(below, frozenset(below)))
    tree.write_to(tmp_path)
    written = read_tree(tmp_path)
    assert written.files == both
    assert written.executable == {*both} - {*above}
