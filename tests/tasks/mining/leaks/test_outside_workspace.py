import sysconfig
import textwrap
import zipfile
from pathlib import Path

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import functions_in
from gametape.tasks.mining.leaks.outside_workspace import build_outside_index
from gametape.tasks.mining.leaks.scan import find_leaks

SOURCE = '''\
class Table:
    def rows(self, keys, strict=False):
        """All rows."""
        found = [self.lookup(key, strict=strict) for key in keys]
        if strict and None in found:
            raise KeyError(keys[found.index(None)])
        return [row for row in found if row is not None]
'''
COPY = (
    SOURCE.replace("found", "hits")
    .replace("Table", "Vendored")
    .replace("key in", "k in")
    .replace("lookup(key", "lookup(k")
)


def found_in(root: Path) -> list[tuple[str, int, str]]:
    index = build_outside_index([root], {"pkg/table.py": SOURCE})
    deleted = dict.fromkeys(functions_in("pkg/table.py", SOURCE), SOURCE)
    return [(leak.where, leak.line, leak.kind) for leak in find_leaks(deleted, SourceTree(), index)]


def test_a_vendored_copy_is_found(tmp_path: Path):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "deep" / "down" / "vendored.py").write_text("import os\n" + COPY)
    (tmp_path / "similar.py").write_text(COPY.replace("is not None", "is None"))
    (tmp_path / "unread.txt").write_text(COPY)
    assert found_in(tmp_path) == [(str(tmp_path / "deep/down/vendored.py"), 3, "outside")]


def test_wheels_are_looked_into(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "bundled.whl", "w") as wheel:
        wheel.writestr("vendored/table.py", COPY)
        wheel.writestr("vendored/notes.txt", COPY)
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4")
    assert found_in(tmp_path) == [(f"{tmp_path}/bundled.whl!vendored/table.py", 2, "outside")]


def test_signatures_over_several_lines_and_odd_docstrings_hide_nothing(tmp_path: Path):
    long = COPY.replace("(self, keys, strict=False)", "(\n        self,\n        keys,\n        strict=False,\n    )")
    (tmp_path / "long.py").write_text(long)
    (tmp_path / "odd.py").write_text(COPY.replace("All rows.", "All\nrows at the margin.\n"))
    (tmp_path / "function.py").write_text(textwrap.dedent(COPY.partition("\n")[2]))
    assert [Path(where).name for where, _, _ in found_in(tmp_path)] == ["function.py", "long.py", "odd.py"]


def test_links_and_what_cannot_be_parsed_are_passed_by(tmp_path: Path):
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "bad.py").write_text("def rows(:\n  lookup index strict raise return if for None KeyError not")
    assert found_in(tmp_path) == []


def test_the_standard_library_is_seen():
    stdlib = Path(sysconfig.get_path("stdlib"))
    source = (stdlib / "textwrap.py").read_text()
    index = build_outside_index([stdlib / "json", stdlib / "textwrap.py", stdlib], {"mine.py": source})
    (wrap,) = (one for one in functions_in("mine.py", source) if one.qualname == "TextWrapper._wrap_chunks")
    assert str(stdlib / "textwrap.py") in {leak.where for leak in find_leaks({wrap: source}, SourceTree(), index)}


def test_what_the_sandbox_hides_is_not_looked_at(tmp_path):
    for place in ("hidden/deep", "shown"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "copy.py").write_text(SOURCE)
    index = build_outside_index([tmp_path], {"pkg/table.py": SOURCE}, {str(tmp_path / "hidden")})
    assert {path for where in index.locations.values() for path, _ in where} == {str(tmp_path / "shown" / "copy.py")}
