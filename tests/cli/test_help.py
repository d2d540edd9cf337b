"""Every verb and sub-verb, found by walking the tree: it takes --help and --json, and its help teaches."""

import re
from typing import Any

import pytest
import typer

from gametape.cli.main import VERBS, app

from .command import run


def _leaves() -> dict[str, Any]:
    """Every command that does something."""
    leaves = {}
    for verb in VERBS:
        command = typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined]
        commands = getattr(command, "commands", None) or {}
        leaves |= {f"{verb} {name}": sub for name, sub in commands.items()}
        if not commands or getattr(command, "invoke_without_command", False):
            leaves[verb] = command
    return leaves


LEAVES = _leaves()


@pytest.mark.parametrize("verb", LEAVES)
def test_every_verb_takes_json_and_explains_each_parameter(verb: str) -> None:
    params = LEAVES[verb].params
    assert any("--json" in param.opts for param in params)
    assert [param.name for param in params if not getattr(param, "help", None)] == []


@pytest.mark.parametrize("verb", LEAVES)
def test_every_help_has_an_example_and_the_exit_codes(verb: str) -> None:
    done = run(*verb.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert f"gametape {verb}" in done.out.partition("Example")[2], "an example of this very verb"
    assert re.search(r"\b[Ee]xits?\b", done.out)
    assert max(map(len, done.out.splitlines())) <= 120


def test_what_is_needed_comes_first_and_what_all_take_last() -> None:
    text = run("solve", "--help").out
    places = [text.index(title) for title in ("Arguments:", "Required options:", "\nOptions:", "Common options:")]
    assert places == sorted(places)
    assert text.index("--json") > places[-1]
