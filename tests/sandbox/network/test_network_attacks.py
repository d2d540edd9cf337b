"""Hostile jobs against the network proxy: none gets through, each is recorded with its reason, and where a measure can
be taken away, the same attack gets through without it."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gametape.sandbox.network_policy import NetworkAccess
from gametape.sandbox.policy import SandboxPolicy
from tests.sandbox.network.attacks import ATTACKS, CONTROLS, Attack
from tests.sandbox.network.play import complaints, escapes, play
from tests.sandbox.network.stage import NetworkStage, open_stage
from tests.sandbox.ordinary import run_as_ordinary_user


@pytest.fixture(scope="module")
def stage() -> Iterator[NetworkStage]:
    with open_stage() as stage:
        yield stage


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_way_around(attack: Attack, stage: NetworkStage) -> None:
    assert complaints(attack, stage, play(attack, stage)) == []


def _controlled() -> list[Any]:
    """Attacks with a control: the first of each is quick to run, the others are slow."""
    first = {attack.control: attack for attack in reversed(ATTACKS) if attack.control}
    others = [attack for attack in ATTACKS if attack.control and attack not in first.values()]
    return [*first.values(), *(pytest.param(attack, marks=pytest.mark.slow) for attack in others)]


@pytest.mark.parametrize("attack", _controlled(), ids=lambda attack: attack.name)
def test_without_its_measure_the_attack_gets_through(attack: Attack, stage: NetworkStage) -> None:
    with CONTROLS[attack.control or ""]():
        result = play(attack, stage)
    assert escapes(attack, stage, result), f"{result.network} {result.stdout[-300:]} {result.stderr[-300:]}"


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_an_ordinary_user_is_no_less_safe(every: int) -> None:
    names = [attack.name for attack in ATTACKS[::every]]
    report = run_as_ordinary_user("tests.sandbox.network.ordinary_runner", names)
    assert report["served"] == "answer to /hello"
    assert {name: wrong for name, wrong in report["complaints"].items() if wrong} == {}
    assert set(report["complaints"]) == set(names)


def test_the_document_counts_the_attacks() -> None:
    text = (Path(__file__).parents[3] / "docs" / "network.md").read_text()
    assert f"lists {len(ATTACKS)} ways around" in text
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert SandboxPolicy.model_validate(tomllib.loads(example)).network_access == NetworkAccess(
        hosts=("packages.example.com", "*.files.example.com"), methods=("GET", "HEAD")
    )
