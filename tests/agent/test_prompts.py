"""What a model is told first."""

from dataclasses import replace
from pathlib import Path

from gametape.agent.prompts import build_system_prompt, build_user_prompt, file_tree, standing_instructions
from gametape.agent.task_setup import initial_prompts
from gametape.tasks.loader import load_task

TASKS = Path(__file__).parents[2] / "examples/tasks"


def test_standing_instructions_come_from_the_root_to_the_special() -> None:
    files = {
        "src/deep/AGENTS.md": b"deep",
        "AGENTS.md": b"root",
        "src/AGENTS.md": b"src",
        "lib/AGENTS.md": b"lib",
        "NOT_AGENTS.md": b"no",
        "empty/AGENTS.md": b" \n",
    }
    assert [path for path, _ in standing_instructions(files)] == [
        "AGENTS.md",
        "lib/AGENTS.md",
        "src/AGENTS.md",
        "src/deep/AGENTS.md",
    ]
    text = build_system_prompt(standing_instructions(files), "- do not run: rm")
    assert text.index("do not run: rm") < text.index("root") < text.index("everything below lib/") < text.index("deep")


def test_they_cannot_crowd_out_the_work() -> None:
    found = standing_instructions({"AGENTS.md": b"\xff" + b"x" * 50_000, "a/AGENTS.md": b"y"})
    assert sum(len(text) for _, text in found) <= 16_000
    assert [path for path, _ in found] == ["AGENTS.md"]


def test_the_file_tree_is_bounded_and_says_what_it_leaves_out() -> None:
    paths = [f"package_{directory}/module_{file}.py" for directory in range(300) for file in range(60)]
    tree = file_tree(["setup.py", *paths])
    assert len(tree) < 4_200
    assert tree.startswith("setup.py\n")
    assert "and 20 more" in tree
    assert "more directories" in tree
    assert file_tree([]) == "(none)"


def test_the_opening_has_the_task_first() -> None:
    text = build_user_prompt("# Do it\n", ["a.py", "b/c.py"], ["A fact."])
    assert text.startswith("# Do it\n\nA fact.")
    assert text.endswith("Files in /workspace:\na.py\nb/  c.py")


def test_a_task_says_what_counts_and_no_more(tmp_path: Path) -> None:
    task = load_task(TASKS / "slugs", tmp_path)
    _, user = initial_prompts(task, budget="Your budget: 3 turns.")
    assert "Only these paths are taken from your work" in user
    assert "New type errors (mypy) and lint findings (ruff)" in user
    assert "Your budget: 3 turns." in user
    assert ("Tests that you cannot see" in user) is bool(task.task.tests.held_out)
    assert "mypy" not in initial_prompts(task, profile="train")[1]
    hidden = task.task.tests.model_copy(update={"held_out": ["tests/test_x.py::test_x"]})
    with_hidden = replace(task, task=task.task.model_copy(update={"tests": hidden}))
    assert "Tests that you cannot see are run as well." in initial_prompts(with_hidden, profile="train")[1]
