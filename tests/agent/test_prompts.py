"""What a model is told first."""

from gametape.agent.prompts import build_system_prompt, build_user_prompt, file_tree, standing_instructions


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
