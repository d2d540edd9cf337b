"""What docs/tasks.md claims and the code can confirm."""

import re

from gametape.tasks.task_toml import GametapeTable

from .made import ROOT

DOCUMENT = (ROOT / "docs/tasks.md").read_text()


def test_the_task_in_the_docs_is_the_example() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert example == (ROOT / "examples/tasks/slugs/task.toml").read_text()


def test_every_key_of_ours_is_in_the_docs() -> None:
    told = set(re.findall(r"`([a-z_]+)[.`]", "".join(re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE))))
    assert told == set(GametapeTable.model_fields)
