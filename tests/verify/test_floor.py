"""Nothing for nothing: what trivial programs earn on a task, with the real runner."""

import pytest

from gametape.core.task import Task, TaskTests
from gametape.core.verdict import FreshCalls
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.floor import measure_floor
from gametape.verify.progress import Floor
from gametape.verify.trivial_programs import TrivialPrograms

START = """class Missing(Exception):
    pass


def total(numbers):
    raise NotImplementedError


def label(text, width):
    raise NotImplementedError
"""
REFERENCE = """class Missing(Exception):
    pass


def total(numbers):
    return sum(numbers)


def label(text, width):
    if not text:
        raise Missing("no text")
    return text.center(width)
"""


def task(visible: str, held_out: str, groups: dict[str, list[str]] | None = None) -> LoadedTask:
    def ids(file: str, text: str) -> list[str]:
        return [f"tests/{file}::{line[4:].partition('(')[0]}" for line in text.splitlines() if line.startswith("def ")]

    suite = SourceTree({"tests/test_a.py": visible.encode(), "tests/test_b.py": held_out.encode()})
    start = SourceTree({"m.py": START.encode()}).overlaid_on(suite.only({"tests/test_a.py"}))
    tests = TaskTests(
        fail_to_pass=ids("test_a.py", visible),
        pass_to_pass=[],
        held_out=ids("test_b.py", held_out),
        groups=groups or {},  # type: ignore[arg-type]
    )
    about = Task(name="trivial", mode="replay", instruction="", source_paths=["m.py"], tests=tests)
    return LoadedTask(about, start, suite, SourceTree({"m.py": REFERENCE.encode()}).overlaid_on(start))


WEAK = task(
    "from m import total\n\n\ndef test_none():\n    assert total([]) == 0\n\n\n"
    "def test_some():\n    assert total([1, 2]) == 3\n",
    "from m import total\n\n\ndef test_zeros():\n    assert total([0]) == 0\n\n\n"
    "def test_more():\n    assert total([4]) == 4\n",
    {"behavioural": ["tests/test_a.py::test_some", "tests/test_b.py::test_more"]},
)
TWO = task(
    "import pytest\nfrom m import Missing, label, total\n\n\ndef test_none():\n    assert total([]) == 0\n\n\n"
    "def test_empty():\n    with pytest.raises(Missing):\n        label(open('/dev/null').read(), 3)\n\n\n"
    "def test_wide():\n    assert label('a', 3) == ' a '\n",
    "import pytest\nfrom m import Missing, label, total\n\n\ndef test_zero():\n    assert total([0]) == 0\n\n\n"
    "def test_nothing():\n    with pytest.raises(Missing):\n        label('', 9)\n\n\n"
    "def test_wider():\n    assert label('a', 5) == '  a  '\n",
)


@pytest.fixture(scope="module")
def weak() -> Floor:
    return measure_floor(WEAK, (), 10.0)


def test_what_a_constant_earns_is_the_floor(weak: Floor) -> None:
    assert weak.progress == 0.5
    assert weak.program == "every function returns the answer of the nearest visible call"
    assert not weak.passes


def test_fresh_calls_lower_it() -> None:
    asked: list[str] = []

    def agreement(sources: SourceTree) -> FreshCalls:
        asked.append(sources.text("m.py"))
        return FreshCalls(calls=18, agreed=1)

    floor = measure_floor(WEAK, (), 10.0, agreement)
    assert floor.progress < 0.2
    best = [text for text in asked if "sum(numbers)" not in text]
    assert len(best) == 3, "the best programs are asked, beside the reference with an expression in it"
    assert not any("NotImplementedError" in text and "return" not in text for text in asked), "only what passes a test"


def test_functions_are_combined_with_errors_that_tests_ask_for() -> None:
    floor = measure_floor(TWO, (), 10.0)
    assert floor.progress == 2 / 3
    assert floor.program.startswith("total returns ")
    assert floor.program.endswith(", label raises Missing")


def test_a_task_that_asks_for_nothing_is_told() -> None:
    empty = task(
        "from m import total\n\n\ndef test_none():\n    assert total([]) == 0\n",
        "from m import total\n\n\ndef test_zero():\n    assert total([0]) == 0\n",
    )
    assert measure_floor(empty, (), 10.0).passes
    assert not measure_floor(empty, (), 10.0, lambda _: FreshCalls(calls=20, agreed=2)).passes


def test_groups_have_floors_of_their_own(weak: Floor) -> None:
    assert weak.groups == {"unit": 1.0, "behavioural": 0.0}
    assert weak.progress == 0.5


def test_a_program_that_hangs_a_test_is_cut_short() -> None:
    waits = "from m import total\n\n\ndef test_wait():\n    while not total([1]):\n        pass\n"
    one = "from m import total\n\n\ndef test_one():\n    assert total([1]) == 1\n\n\n"
    floor = measure_floor(task(waits, one + "def test_two():\n    assert total([2]) == 2\n"), (), 0.5)
    assert floor.progress == 0.5, "a constant that is true ends the loop, and is right once in two"


def test_the_nearest_visible_answer_is_no_work() -> None:
    sums = task(
        "from m import total\n\n\ndef test_few():\n    assert total([1, 2]) == 3\n\n\n"
        "def test_many():\n    assert total([10, 20, 30, 40]) == 100\n",
        "from m import total\n\n\ndef test_nearly_few():\n    assert total([2, 1]) == 3\n\n\n"
        "def test_other():\n    assert total([7, 7, 7]) == 21\n",
    )
    floor = measure_floor(sums, (), 10.0)
    assert floor.program == "every function returns the answer of the nearest visible call"
    assert floor.progress == pytest.approx(1 / 2)


def test_an_error_that_says_every_text_is_no_work() -> None:
    waits = "import pytest\nfrom m import Missing, label\n\n\ndef test_empty():\n"
    waits += "    with pytest.raises(Missing, match='no text'):\n        label('', {0})\n\n\n"
    waits += "def test_wide():\n    with pytest.raises(Missing, match=r'wider than \\d+ by {0}'):\n"
    waits += "        label('abc', {0})\n"
    floor = measure_floor(task(waits.format(2), waits.format(1)), (), 10.0)
    assert floor.passes
    assert floor.program == "every function raises Missing"


def test_a_refusal_like_the_nearest_visible_one_is_no_work() -> None:
    refuses = "import pytest\nfrom m import Missing, label\n\n\ndef test_empty():\n"
    refuses += "    with pytest.raises(Missing, match='no text'):\n        label('', {0})\n\n\n"
    refuses += "def test_short():\n    assert label('text', {0}) == 'text'\n"
    floor = measure_floor(task(refuses.format(2), refuses.format(3)), (), 10.0)
    assert floor.passes
    assert floor.program == "every function returns the answer of the nearest visible call"


def test_where_tests_share_a_process_with_the_code_an_error_is_read_test_by_test() -> None:
    text = "import pytest\nfrom m import Missing, label, total\n\n\n"
    text += "def test_empty():\n    total([])\n    empty = open('/dev/null').read()\n"
    text += "    with pytest.raises(Missing):\n        label(empty, 3)\n\n\n"
    text += "def test_wide():\n    assert label('a', 3) == ' a '\n\n\ndef test_sum():\n    assert total([1]) == 1\n"
    both = task(
        text, text.replace("'a', 3) == ' a '", "'ab', 4) == ' ab '").replace("total([1]) == 1", "total([]) == 0")
    )
    apart, shared = (measure_floor(both, (), 10.0, shared=shared) for shared in (False, True))
    assert shared.progress > apart.progress
    assert shared.program.endswith("or raises what a test waits for")
    assert not shared.passes


def test_bodies_fit_their_functions() -> None:
    programs = TrivialPrograms(TWO)
    words = [body.words for body in programs.bodies]
    assert {"returns None", "returns its second argument", "raises Missing", "raises ValueError"} <= set(words)
    second = next(body for body in programs.bodies if body.words == "returns its second argument")
    written = programs.uniform(second)
    assert written is not None
    text = written.files["m.py"].decode()
    assert "def label(text, width):\n    return width\n" in text
    assert "def total(numbers):\n    return None\n" in text


def test_one_expression_is_trivial_unless_it_is_the_work() -> None:
    bodies = {body.words: body.by_function for body in TrivialPrograms(WEAK).bodies}
    assert bodies["returns first[-1] of its arguments"]["total"] == "return numbers[-1]"
    assert bodies["returns first + second of its arguments"] == {"label": "return text + width"}
    singles = "from m import total\n\n\ndef test_{}():\n    assert total([{}]) == {}\n"
    floor = measure_floor(task(singles.format("a", 5, 5), singles.format("b", 8, 8)), (), 10.0)
    assert not floor.passes


def test_who_says_everything_passes_a_test_that_looks_for_a_part() -> None:
    looks = "from m import total\n\n\ndef test_{0}(capsys):\n    total([{0}, 2])\n"
    looks += "    assert 'sum: {1}' in capsys.readouterr().out\n"
    floor = measure_floor(task(looks.format(1, 3), looks.format(5, 7)), (), 10.0)
    assert floor.program == "every function says everything"
    assert floor.passes


def test_who_answers_with_everything_passes_a_test_that_looks_for_a_part() -> None:
    looks = "import io\nfrom m import label\n\n\ndef test_{0}():\n"
    looks += "    assert '{0}: {1}' in label(io.StringIO('{0},'), {1})\n"
    floor = measure_floor(task(looks.format("tea", 3), looks.format("bun", 41)), (), 10.0)
    assert floor.program == "every function returns everything that is looked for in its answers"
    assert floor.passes


def test_the_likeliest_expression_is_trivial() -> None:
    pairs = "from m import label\n\n\ndef test_{0}():\n    assert label('ab', {0}) == 'ab' * {0}\n\n\n"
    pairs += "def test_{0}_less():\n    assert label('b', 1{0}) == 'b' * 1{0}\n"
    programs = TrivialPrograms(task(pairs.format(2), pairs.format(3)))
    bodies = {body.words: body.by_function for body in programs.bodies}
    assert bodies["returns the likeliest expression of its arguments"] == {"label": "return text * width"}
