"""A module that is missing here is said before a token is spent; one that the agent may write is not."""

from pathlib import Path

import pytest

from gametape.core.errors import MissingDependency
from gametape.desk.goals.goal_request import GoalRequest, create_goal
from tests.desk.goals.shop import DONE, lay, script

_USES = "from till import pay\n\n\ndef test_pay():\n    assert pay() == 1\n"
_ABSENT = "import absent_library\n\n\ndef pay():\n    return 1\n"


def _create(
    tmp_path: Path, changes: dict[str, str | None], instruction: str = "", success: str = "pytest"
) -> list[str]:
    """The warnings of a goal over a changed workspace."""
    told: list[str] = []
    workspace = lay(tmp_path / "workspace", changes)
    request = GoalRequest(workspace, success, script(tmp_path / "turns.jsonl", [DONE]), instruction)
    create_goal(tmp_path / "home", request, told.append)
    return told


@pytest.mark.parametrize(
    "changes",
    [
        {"till/__init__.py": "from till.pay import pay\n", "till/pay.py": _ABSENT},
        {"till.py": _ABSENT, "requirements.txt": "absent-library>=2\n"},
        {"till.py": "import requests_oauthlib\nimport yaml_absent\n", "requirements.txt": "requests_oauthlib\n"},
        {"src/till/__init__.py": _ABSENT},
    ],
)
def test_nothing_is_begun_where_no_test_can_be_imported(tmp_path: Path, changes: dict[str, str | None]) -> None:
    with pytest.raises(MissingDependency, match=r"tests/test_till.py cannot be imported: No module named '\w+'; give"):
        _create(tmp_path, {**changes, "tests/test_till.py": _USES}, success="pytest tests/test_till.py")
    assert not (tmp_path / "home/goals").exists()


def test_where_only_some_cannot_it_is_a_warning(tmp_path: Path) -> None:
    (told,) = _create(tmp_path, {"till/__init__.py": _ABSENT, "tests/test_till.py": _USES})
    assert "tests/test_till.py cannot be imported: No module named 'absent_library'" in told
    assert str(tmp_path / "workspace/.venv") in told


@pytest.mark.parametrize(
    ("changes", "instruction"),
    [
        ({}, ""),
        ({"till.py": "from purse import pay\n"}, ""),
        ({"till/__init__.py": "from till.purse import pay\n"}, ""),
        ({"till/__init__.py": _ABSENT}, "Write absent_library.py, which till needs."),
    ],
)
def test_a_module_that_the_agent_may_write_is_no_reason(
    tmp_path: Path, changes: dict[str, str | None], instruction: str
) -> None:
    files = {**changes, "tests/test_till.py": _USES}
    assert not _create(tmp_path, files, instruction, "pytest tests/test_till.py")
