"""Room, and several processes at one store."""

import os
import threading
from pathlib import Path

import pytest

from tests.sandbox.snapshots.rig import SETTINGS, Rig, Setting, Trouble

FILL = "open('{name}', 'wb').write(os.urandom({size}))"


def prepared(rig: Rig, size: int) -> str:
    rig.evaluate(f"import os; (root / 'source').mkdir(); (root / 'source/f').write_bytes(os.urandom({size}))")
    return str(rig.import_tree(f"{rig.root}/source"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
@pytest.mark.parametrize("mode", [SETTINGS[0], SETTINGS[2]], ids=str)
def test_a_full_disk_leaves_the_store_as_it_was(mode: Setting, tmp_path: Path) -> None:
    with Rig(mode, disk_mb=20) as rig:
        base = prepared(rig, 2_000_000)
        view = rig.open(base)
        rig.inside(view, "import os; " + FILL.format(name="g", size=9_000_000))
        for _ in range(2):
            with pytest.raises(Trouble) as caught:
                rig.seal(view)
            assert caught.value.kind == "DiskFull"
            assert rig.evaluate("answer = [*store.paths.building.glob('*/tree'), *store.paths.trash.iterdir()]") == []
        rig.inside(view, "import os; os.unlink('g'); open('h', 'w').write('fits')")
        sealed = rig.seal(view)
        assert rig.evaluate(f"store.export({sealed!r}, __import__('pathlib').Path('{tmp_path}/out'))") is None
        assert (tmp_path / "out" / "h").read_text() == "fits"
        assert (tmp_path / "out" / "f").stat().st_size == 2_000_000


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_store_takes_no_more_than_it_may(setting: Setting) -> None:
    with Rig(setting, max_bytes=5_000_000) as rig:
        base = prepared(rig, 1_000_000)
        view = rig.open(base)
        rig.inside(view, "import os; " + FILL.format(name="f", size=3_000_000))
        first = rig.seal(view)
        rig.inside(view, "import os; " + FILL.format(name="f", size=3_000_000))
        with pytest.raises(Trouble) as caught:
            rig.seal(view)
        assert caught.value.kind == "StoreFull"
        assert "5000000" in str(caught.value)
        assert rig.evaluate(f"answer = store.collect(keep=[{base!r}], max_bytes=2_000_000)") == [first]
        assert rig.evaluate("answer = store.used_bytes()") < 2_000_000
        rig.seal(view)
        assert rig.evaluate("answer = store.used_bytes()") < 5_000_000


def test_two_processes_share_a_store(rig: Rig) -> None:
    base = prepared(rig, 1000)
    with Rig(rig.setting, root=rig.root) as other:
        view = other.open(base)
        rig.evaluate(f"store.remove({base!r})")
        rig.evaluate("store.collect()")
        other.inside(view, "open('more', 'w').write('x')")
        sealed = other.seal(view)
        assert sorted(os.listdir(rig.export(sealed))) == ["f", "more"]
        with pytest.raises(Trouble) as caught:
            rig.open(base)
        assert caught.value.kind == "UnknownSnapshot"
        troubles: list[BaseException] = []
        both = [threading.Thread(target=busy, args=(one, sealed, troubles)) for one in (rig, other)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert troubles == []
    rig.evaluate("store.collect()")
    names = rig.evaluate("answer = sorted(snapshot.id for snapshot in store.snapshots())")
    assert names == [sealed]
    assert rig.evaluate(f"answer = len(store.snapshot({sealed!r}).layers)") == rig.evaluate(
        "answer = len(list(store.paths.layers.iterdir()))"
    )


def busy(rig: Rig, snapshot: str, troubles: list[BaseException]) -> None:
    """Fork, seal, remove and collect, again and again."""
    try:
        for number in range(25):
            view = rig.open(snapshot)
            rig.inside(view, f"open('own', 'w').write('{number}')")
            made = rig.seal(view)
            rig.close(view)
            assert rig.evaluate(f"answer = list(store.diff({snapshot!r}, {made!r}).items())") == [["own", "added"]]
            rig.evaluate(f"store.remove({made!r}); store.collect()")
    except BaseException as error:
        troubles.append(error)
