"""Long chains of forks: the stack stays short and what it shows stays right."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.sandbox.snapshots.layers import MOST_LAYERS, layers_to_merge
from tests.sandbox.snapshots.rig import SETTINGS, Rig, Setting

CHANGE = """
import os
n = {number}
open(f'made-{{n % 50}}', 'w').write(str(n))
open('directory/always', 'w').write(str(n))
if n % 7 == 0 and os.path.exists('made-%d' % ((n - 3) % 50)):
    os.unlink('made-%d' % ((n - 3) % 50))
if n % 11 == 0:
    for name in os.listdir('directory'):
        os.unlink('directory/' + name)
    os.rmdir('directory')
    os.mkdir('directory')
    open('directory/always', 'w').write('again')
"""


@pytest.mark.parametrize("setting", SETTINGS[:2], ids=str)
def test_five_hundred_generations(setting: Setting) -> None:
    model = {"directory/old": "old"}
    with Rig(setting) as rig:
        rig.evaluate("(root / 'source/directory').mkdir(parents=True)")
        rig.evaluate("(root / 'source/directory/old').write_text('old')")
        snapshot = rig.import_tree(f"{rig.root}/source")
        most = 0
        for number in range(500):
            view = rig.open(snapshot)
            rig.inside(view, CHANGE.format(number=number))
            play(model, number)
            before, snapshot = snapshot, rig.seal(view)
            rig.close(view)
            most = max(
                most, rig.evaluate(f"answer = len(store.snapshot({snapshot!r}).layers); store.remove({before!r})")
            )
        assert most <= MOST_LAYERS
        exported = Path(rig.export(snapshot))
        files = [path for path in exported.rglob("*") if path.is_file()]
        assert {path.relative_to(exported).as_posix(): path.read_text() for path in files} == model
        assert rig.evaluate("answer = len(list(store.paths.layers.iterdir()))") <= MOST_LAYERS


def play(model: dict[str, str], number: int) -> None:
    """What CHANGE does."""
    model[f"made-{number % 50}"] = str(number)
    model["directory/always"] = str(number)
    if number % 7 == 0 and f"made-{(number - 3) % 50}" in model:
        del model[f"made-{(number - 3) % 50}"]
    if number % 11 == 0:
        for name in [name for name in model if name.startswith("directory/")]:
            del model[name]
        model["directory/always"] = "again"


@given(st.lists(st.integers(0, 10_000), max_size=100))
def test_the_stack_ends_up_short(entries: list[int]) -> None:
    stack: list[int] = []
    for size in entries:
        stack.insert(0, size)
        if count := layers_to_merge(stack):
            assert count < len(stack)  # the base is left alone
            stack[:count] = [sum(stack[:count])]
        assert len(stack) <= MOST_LAYERS


def test_a_long_chain_links_each_entry_a_few_times_only() -> None:
    stack, work = [100_000], 0
    for _ in range(2000):
        stack.insert(0, 20)
        if count := layers_to_merge(stack):
            work += sum(stack[:count])
            stack[:count] = [sum(stack[:count])]
    assert work < 2000 * 20 * 10
    assert stack[-1] == 100_000
