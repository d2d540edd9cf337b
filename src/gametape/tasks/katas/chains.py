"""Chains of katas: several functions in one workspace, to be written and tested one after the other with all tools. A
rollout has some turns for each function."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from gametape.core.errors import BadInput
from gametape.core.task import Difficulty
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.katas.generator import TEMPLATES_BY_FAMILY, different_katas, kata_stream
from gametape.tasks.katas.kata import Kata

KATA_CHAINS_PREFIX = "kata-chains:"
"""What a suite of chains that are made on the spot begins with."""
MAX_FUNCTIONS = 6
_NAMED_COUNT = 60
_DRAWN = 20
"""Times as many katas are drawn as a suite needs: the functions of a chain have different names."""


def chain_task(katas: Sequence[Kata], number: str) -> LoadedTask:
    """One task that asks for all of these functions, which have different names."""
    parts = [kata.to_loaded_task(number) for kata in katas]
    names = [kata.template.function for kata in katas]
    if len(set(names)) < len(names):
        raise BadInput(f"functions of a chain have different names, not {', '.join(names)}")
    asked = [f"{at}. In {kata.path}: {kata.instruction}" for at, kata in enumerate(katas, start=1)]
    first = parts[0].task
    tests = first.tests.model_copy(
        update={
            "fail_to_pass": [test for part in parts for test in part.task.tests.fail_to_pass],
            "held_out": [test for part in parts for test in part.task.tests.held_out],
        }
    )
    opening = "Write these functions, and run the tests of each:\n\n" if len(parts) > 1 else ""
    task = first.model_copy(
        update={
            "name": f"kata-chain/{len(parts)}-{number}",
            "instruction": opening + ("\n".join(asked) if len(parts) > 1 else katas[0].instruction),
            "source_paths": [path for part in parts for path in part.task.source_paths],
            "tests": tests,
            "difficulty": Difficulty(prior=0.02 * len(parts)),
        }
    )
    return replace(
        parts[0],
        task=task,
        start=_merged([part.start for part in parts]),
        suite=_merged([part.suite for part in parts]),
        reference=_merged([part.reference for part in parts]),
    )


def named_chains(name: str, seed: int) -> list[LoadedTask]:
    """The chains of a name, `FAMILY:FUNCTIONS` or `FAMILY:FUNCTIONS:COUNT`, in memory."""
    family, _, numbers = name.partition(":")
    functions, _, count = numbers.partition(":")
    known = family in (*TEMPLATES_BY_FAMILY, "all")
    wanted = int(count) if count.isdecimal() else 0 if count else _NAMED_COUNT
    if not (known and functions.isdecimal() and 1 <= int(functions) <= MAX_FUNCTIONS and wanted):
        families = ", ".join(TEMPLATES_BY_FAMILY)
        raise BadInput(
            f"{KATA_CHAINS_PREFIX}{name}: give {KATA_CHAINS_PREFIX}FAMILY:FUNCTIONS or FAMILY:FUNCTIONS:COUNT, "
            f"with 1 to {MAX_FUNCTIONS} functions each ({families} or all)"
        )
    chains = _chains(family, int(functions), wanted, seed)
    return [chain_task(chain, f"{seed}-{at:04d}") for at, chain in enumerate(chains)]


def _chains(family: str, functions: int, count: int, seed: int) -> list[list[Kata]]:
    """The katas of the family's stream in order, each in the first chain that has room and no function of its name. Two
    chains may have a function in common; chains of one function all differ."""
    name = None if family == "all" else family
    if functions == 1:
        return [[kata] for kata in different_katas(count, seed, name)]
    chains: list[list[Kata]] = [[] for _ in range(count)]
    for kata in islice(kata_stream(seed, name), _DRAWN * functions * count):
        own = kata.template.function
        room = (one for one in chains if len(one) < functions and all(own != other.template.function for other in one))
        next(room, []).append(kata)
    if any(len(chain) < functions for chain in chains):
        raise BadInput(f"katas of the family {family} have too few names for chains of {functions}")
    return chains


def _merged(trees: Sequence[SourceTree | None]) -> SourceTree:
    return SourceTree({path: content for tree in trees if tree is not None for path, content in tree.files.items()})
