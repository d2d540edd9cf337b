"""The prior grows with what is to be written, and shrinks with what is shown."""

import pytest

from gametape.tasks.mining.difficulty import VisibleContext, difficulty_prior
from gametape.tasks.mining.functions import functions_in

SOURCE = """\
def a(x):
    '''Says.

    Much.
    '''
    # why
    if x and x > 1 or not x:
        return b(x)
    return [y for y in x if y]


def b(x):
    return c(x)


def c(x):
    return (
        x
    )


def d(x):
    return e(x)


def e(x):
    return d(x)
"""
FUNCTIONS = functions_in("m.py", SOURCE)


def _of(names: str, fail_to_pass: int = 5, shown: VisibleContext = "tests") -> tuple[float, dict[str, float]]:
    return difficulty_prior({"m.py": SOURCE}, [one for one in FUNCTIONS if one.qualname in names], fail_to_pass, shown)


@pytest.mark.parametrize(
    ("names", "component", "amount"),
    [
        ("a", "lines", 3),
        ("c", "lines", 2),
        ("a", "cyclomatic", 5),
        ("b", "cyclomatic", 1),
        ("abc", "functions", 3),
        ("abc", "call_depth", 3),
        ("ac", "call_depth", 1),
        ("de", "call_depth", 2),
        ("abc", "files", 1),
        ("a", "fail_to_pass", 5),
    ],
)
def test_components(names: str, component: str, amount: int) -> None:
    assert _of(names)[1][component] == amount


def test_more_to_write_is_harder() -> None:
    growing = [_of("abcde"[:count])[0] for count in range(6)]
    assert growing == sorted(set(growing))
    assert _of("a", 5)[0] < _of("a", 50)[0]


def test_more_to_see_is_easier() -> None:
    assert _of("abc", shown="docstrings")[0] < _of("abc", shown="tests")[0]


def test_the_range_is_used() -> None:
    sources = {f"m{number}.py": SOURCE * 8 for number in range(8)}
    everything = [one for path, text in sources.items() for one in functions_in(path, text)]
    assert difficulty_prior(sources, everything, 400, "tests")[0] > 0.95
    assert _of("b", 2, "docstrings")[0] < 0.1
