import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.static_analysis.findings import ToolFinding
from gametape.verify.static_analysis.python_source import own_sources
from gametape.verify.submission import Submission
from tests.verify.layers.toy_task import toy_task, tree

START = {"src/m.py": "import os\n\n\ndef f(x: int) -> str:\n    return x\n"}
TASK = toy_task(START, {"src/m.py": "def f(x: int) -> str:\n    return str(x)\n"})


def everything(home: Path) -> dict[str, str]:
    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_baseline_is_the_most_of_start_and_reference(tmp_path: Path) -> None:
    baseline = StaticAnalyzer(tmp_path).baseline(TASK)
    assert baseline.types is not None
    assert [(file, code) for file, code, _ in baseline.types] == [("src/m.py", "return-value")]
    assert baseline.lint is not None
    assert [(file, code) for file, code, _ in baseline.lint] == [("src/m.py", "F401")]


def test_attempts_leave_no_trace_in_what_later_ones_read(tmp_path: Path) -> None:
    analyzer = StaticAnalyzer(tmp_path)
    analyzer.baseline(TASK)
    before = everything(tmp_path)
    assert any("cache" in path for path in before)
    for text in ('x: int = "a"\n', "def f(:\n", "x = " + "+".join(["1"] * 30_000)):
        analyzer.type_report(
            TASK, tree({"src/m.py": text, "src/cache/x.py": "x = 1\n", "src/files.txt": "tree/none.py"})
        )
    assert everything(tmp_path) == before


def test_the_warm_cache_tells_files_of_the_same_size_apart(tmp_path: Path) -> None:
    analyzer = StaticAnalyzer(tmp_path)
    for value, errors in (("1 + 1", 0), ('"one"', 1), ("1 - 1", 0)):
        assert len(analyzer.type_report(TASK, tree({"src/m.py": f"x: int = {value}\n"})).findings) == errors


def test_the_warm_cache_tells_files_of_the_same_second_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = SourceTree.write_to

    def in_one_second(self: SourceTree, directory: Path) -> None:
        write(self, directory)
        for path in self.files:
            os.utime(directory / path, (1e9, 1e9))

    monkeypatch.setattr(SourceTree, "write_to", in_one_second)
    task = toy_task({"src/m.py": "x: int = 1 + 1\n"})
    analyzer = StaticAnalyzer(tmp_path)
    analyzer.baseline(task)
    assert len(analyzer.type_report(task, tree({"src/m.py": 'x: int = "one"\n'})).findings) == 1


def test_a_broken_entry_is_made_again(tmp_path: Path) -> None:
    whole = StaticAnalyzer(tmp_path).baseline(TASK)
    facts = next(tmp_path.rglob("facts.json"))
    for damage in (b"{}", b"[" * 100_000):
        facts.write_bytes(damage)
        assert StaticAnalyzer(tmp_path).baseline(TASK) == whole
        assert facts.read_bytes() != damage
    shard = next(path for path in facts.parent.joinpath("cache").rglob("*.db"))
    good = shard.read_bytes()
    shard.write_bytes(good[: len(good) // 2])
    assert len(StaticAnalyzer(tmp_path).type_report(TASK, own_sources(TASK.task, TASK.start)).findings) == 1
    assert len(shard.read_bytes()) != len(good) // 2
    facts.unlink()
    assert StaticAnalyzer(tmp_path).baseline(TASK) == whole
    assert [path.name for path in (tmp_path / "toolbox").iterdir()] == [facts.parent.name]


def test_answers_found_ahead_are_remembered(tmp_path: Path) -> None:
    submission = Submission(loaded_task=TASK, sources=TASK.start, workspace=TASK.start, links={})
    analyzer = StaticAnalyzer(tmp_path)
    analyzer.prefetch(submission)
    sources = own_sources(TASK.task, TASK.start)
    assert analyzer.type_report(TASK, sources) is analyzer.type_report(TASK, sources)
    assert analyzer.lint_report(TASK, sources) is analyzer.lint_report(TASK, sources)
    assert len(analyzer.type_report(TASK, sources).findings) == len(analyzer.lint_report(TASK, sources).findings) == 1


def test_many_may_learn_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: StaticAnalyzer(tmp_path).baseline(TASK), range(4)))
    assert all(baseline == found[0] for baseline in found)
    assert len(list((tmp_path / "toolbox").iterdir())) == 1


def test_a_finding_stays_itself_when_lines_move() -> None:
    one = ToolFinding("a.py", 3, "F811", "Redefinition of unused `x` from line 1")
    assert one.key == ToolFinding("a.py", 9, "F811", "Redefinition of unused `x` from line 7").key
    assert str(one) == "a.py:3: Redefinition of unused `x` from line 1 [F811]"
