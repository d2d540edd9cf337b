"""What of a check follows a move of the product, and what does not."""

import pytest

from gametape.desk.goals.followed_moves import FollowedMoves, follow_moves
from gametape.record.source_tree import SourceTree

_TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"
_CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef few():\n    return [1]\n"
_START = {"shop.py": "total = sum\n", "tests/test_shop.py": _TEST, "tests/conftest.py": _CONFTEST}


def _follow(changes: dict[str, str | None]) -> FollowedMoves:
    after = {path: text for path, text in {**_START, **changes}.items() if text is not None}
    trees = [SourceTree({path: text.encode() for path, text in files.items()}) for files in (_START, after)]
    return follow_moves(*trees, ["tests"], ["."])


def test_an_import_of_the_same_names_from_another_module_of_the_product_is_followed() -> None:
    moved = {"shop.py": None, "store.py": "total = sum\n", "tests/test_shop.py": _TEST.replace("shop", "store")}
    assert {*_follow(moved).files} == {"tests/test_shop.py"}


@pytest.mark.parametrize(
    "test",
    [
        _TEST.replace("== 1", "== 2").replace("shop", "store"),
        _TEST.replace("from shop", "from missing"),
        _TEST.replace("from shop import total", "from store import all_of as total"),
        _TEST.replace("from shop", "from tests.mine"),
        _TEST.replace("from shop", "from statistics"),
        f"import store\n{_TEST}",
        "def (",
    ],
)
def test_any_other_change_of_a_test_is_not(test: str) -> None:
    changes = {"store.py": "total = sum\n", "tests/mine.py": "total = sum\n", "tests/test_shop.py": test}
    assert not _follow(changes).files.files


def test_new_fixtures_for_new_tests_are_followed() -> None:
    assert {*_follow({"tests/conftest.py": f"{_CONFTEST}\n\n@pytest.fixture\ndef many(): ...\n"}).files}


def test_a_new_conftest_with_fixtures_alone_is_followed() -> None:
    new = "tests/more/conftest.py"
    assert {*_follow({new: _CONFTEST.replace("few", "many")}).files} == {new}
    assert not _follow({new: _CONFTEST}).files.files, "a test that was there may ask for it"
    assert not _follow({new: "from helper import many\n"}).files.files, "it may be a fixture for all tests"
    assert not _follow({new: "import helper as pytest_runtest_setup\n"}).files.files


@pytest.mark.parametrize(
    "more",
    [
        "@pytest.fixture(autouse=True)\ndef many(): ...\n",
        "@pytest.fixture\ndef many(one=print()): ...\n",
        "@pytest.fixture\ndef many() -> print(): ...\n",
        "@pytest.fixture\ndef total(): ...\n",
        "@pytest.fixture\ndef tmp_path(): ...\n",
        "def pytest_runtest_setup(item): ...\n",
        "@print\ndef many(): ...\n",
    ],
)
def test_no_other_code_in_a_conftest_is(more: str) -> None:
    assert not _follow({"tests/conftest.py": f"{_CONFTEST}\n\n{more}"}).files.files


def test_a_module_that_went_to_src_is_imported_from_there() -> None:
    assert _follow({"shop.py": None, "src/shop.py": "total = sum\n"}).roots == ("src",)
    assert _follow({"src/json.py": ""}).roots == ()
