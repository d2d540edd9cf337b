"""Every form gives sound katas; a sample of each family is right and wrong in the real verifier."""

from itertools import islice
from pathlib import Path
from random import Random

import pytest

from gametape.core.errors import BadInput
from gametape.record.source_tree import SourceTree
from gametape.tasks.katas.generator import TEMPLATES_BY_FAMILY, kata_family, kata_stream, make_katas
from gametape.tasks.katas.kata import KataTemplate, draw_kata
from gametape.tasks.loader import load_task
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier

FORMS = [(family, made) for family, forms in TEMPLATES_BY_FAMILY.items() for made in forms]


@pytest.mark.parametrize(("family", "made"), FORMS, ids=lambda value: getattr(value, "__name__", value))
def test_every_form_can_be_drawn_and_its_tests_tell_right_from_simple(family: str, made: object) -> None:
    assert callable(made)
    for seed in range(8):
        kata = draw_kata(family, made(Random(seed)), Random(seed))
        namespace: dict[str, object] = {}
        exec(kata.source, namespace)
        function = namespace[kata.template.function]
        assert callable(function)
        every = [*kata.visible_inputs, *kata.held_out_inputs]
        assert len({repr(arguments) for arguments in every}) == len(every) == 10
        assert all(function(*arguments) == kata.reference_answer(arguments) for arguments in every)
        for half in (kata.visible_inputs, kata.held_out_inputs):
            answers = [kata.reference_answer(arguments) for arguments in half]
            assert any(answer != answers[0] for answer in answers)
            assert any(answer != arguments[0] for answer, arguments in zip(answers, half, strict=True))


def test_a_seed_gives_the_same_katas_and_many_differ(tmp_path: Path) -> None:
    first, again = (make_katas(tmp_path / name, 8, seed=5) for name in ("first", "again"))
    assert [path.name for path in first] == [path.name for path in again]
    assert [load_task(path).digest for path in first] == [load_task(path).digest for path in again]
    assert [kata_family(load_task(path).task) for path in first[:4]] == list(TEMPLATES_BY_FAMILY)
    asked = {(kata.signature, kata.template.description) for kata in islice(kata_stream(0), 4000)}
    assert len(asked) > 1300


def test_what_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="arithmetic, strings, lists, dicts"):
        make_katas(tmp_path / "a", 1, 0, "poems")
    with pytest.raises(BadInput, match="no 2000 different"):
        make_katas(tmp_path / "b", 2000, 0, "dicts")
    assert not (tmp_path / "b").exists()
    always = KataTemplate("f", ("x",), "returns 1", "1", lambda rng: (rng.random(),))
    with pytest.raises(ValueError, match="no inputs"):
        draw_kata("none", always, Random(0))


def test_the_reference_passes_and_nothing_less_does(tmp_path: Path) -> None:
    with ZygotePool(size=2) as crew:
        for number, path in enumerate(make_katas(tmp_path / "katas", 4, seed=11)):
            made = load_task(path)
            assert made.reference is not None
            source = made.task.source_paths[0]
            name = made.task.split.modules[0] if made.task.split else ""
            cheats = [
                made.start.files[source],
                f"def {name}(*given):\n    return given[0]\n".encode(),
                b"",
                f"import os\ndef {name}(*given):\n    os._exit(0)\n".encode(),
            ]
            with Verifier(made, tmp_path / "home", crew, keep_verdicts=False) as verifier:
                assert verifier.verify(_written(tmp_path / f"right-{number}", made.reference), "train").passed
                wrong = SourceTree({source: cheats[number]}).overlaid_on(made.start)
                verdict = verifier.verify(_written(tmp_path / f"wrong-{number}", wrong), "train")
            assert not verdict.passed
            assert verdict.reward <= 0.5


def _written(directory: Path, tree: SourceTree) -> Path:
    directory.mkdir()
    tree.write_to(directory)
    return directory
