"""Trees that were made to hurt whoever walks, copies or removes them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.sandbox.snapshots.rig import SETTINGS, Rig, Trouble

DIG = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
for _ in range({depth}):
    os.mkdir('d')
    os.chdir('d')
open('bottom', 'w').write('here')
"""


@pytest.fixture(params=SETTINGS, ids=str)
def blank(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, int]]:
    """A rig and a view of a small tree."""
    with Rig(request.param) as rig:
        rig.evaluate("(root / 'source').mkdir(); (root / 'source/old').write_text('old')")
        yield rig, rig.open(rig.import_tree(f"{rig.root}/source"))


def layers_left(rig: Rig) -> int:
    return int(rig.evaluate("answer = len(list(store.paths.layers.iterdir()))"))


@pytest.mark.parametrize("blank", [SETTINGS[0], SETTINGS[3]], ids=str, indirect=True)
def test_very_deep_trees(blank: tuple[Rig, int]) -> None:
    """Deeper than a path, the stack of the interpreter or the open files of a process can go."""
    rig, view = blank
    rig.evaluate("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))")
    rig.inside(view, DIG.format(depth=3_000))
    first, second = rig.seal(view), rig.seal(view)
    assert rig.evaluate(f"answer = store.diff({first!r}, {second!r})") == {}
    exported = rig.export(second)
    find = f"import os; os.chdir({exported!r})\nfor _ in range(3_000): os.chdir('d')\nanswer = open('bottom').read()"
    assert rig.inside(view, find) == "here"
    rig.inside(view, "import os; os.chdir('/')")
    rig.close(view)
    rig.evaluate(
        f"from gametape.sandbox.snapshots.cleanup import remove_tree; from pathlib import Path\n"
        f"store.remove({first!r}); store.remove({second!r}); remove_tree(Path({exported!r}))"
    )
    assert layers_left(rig) == 1


def test_links_are_never_followed(blank: tuple[Rig, int], tmp_path: Path) -> None:
    rig, view = blank
    rig.evaluate("(root / 'precious').mkdir(); (root / 'precious/file').write_text('mine')")
    precious = f"{rig.root}/precious"
    rig.inside(view, "import os; os.mkdir('turn'); open('turn/file', 'w').write('x')")
    rig.seal(view)
    rig.inside(
        view, f"import os, shutil; shutil.rmtree('turn'); os.symlink({precious!r}, 'turn'); os.symlink('.', 'me')"
    )
    exported = Path(rig.export(rig.seal(view)))
    assert (exported / "turn").is_symlink()
    rig.close(view)
    rig.evaluate("for snapshot in store.snapshots(): store.remove(snapshot.id)")
    assert rig.evaluate("answer = (root / 'precious/file').read_text()") == "mine"


def test_pipes_are_not_waited_for_and_sockets_hide_what_was_there(blank: tuple[Rig, int]) -> None:
    rig, view = blank
    rig.inside(
        view,
        "import os, socket; os.mkfifo('pipe'); os.unlink('old'); socket.socket(socket.AF_UNIX).bind('old')",
    )
    sealed = rig.seal(view)
    assert rig.evaluate(f"answer = store.snapshot({sealed!r}).skipped") == ["old"]
    assert os.listdir(rig.export(sealed)) == ["pipe"]


def test_many_names_of_one_file(blank: tuple[Rig, int]) -> None:
    rig, view = blank
    rig.inside(view, "import os; open('n', 'w').write('x' * 5000)\nfor i in range(3000): os.link('n', f'n{i}')")
    sealed = rig.seal(view)
    exported = Path(rig.export(sealed))
    assert (exported / "n2999").stat().st_nlink == 3001
    again = rig.open(sealed)
    rig.inside(again, "open('n7', 'a').write('y')")
    assert (Path(rig.export(rig.seal(again))) / "n7").stat().st_size == 5001


def test_a_mark_of_ours_that_was_forged_means_nothing(blank: tuple[Rig, int]) -> None:
    """Attributes by which layers hide or redirect, and our own note of a mode, set from inside."""
    rig, view = blank
    rig.inside(view, "import os; os.mkdir('d'); open('d/f', 'w').write('1')")
    first = rig.seal(view)
    second = rig.open(first)
    names = ["user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout"]
    forge = f"""
import os
for path in ('d', 'd/f'):
    os.setxattr(path, 'user.gametape.mode', b'7777')
    for name in {names!r}:
        try:
            os.setxattr(path, name, b'y')
        except OSError:
            pass
"""
    rig.inside(second, forge)
    exported = Path(rig.export(rig.seal(second)))
    assert (exported / "d" / "f").read_text() == "1"
    assert (exported / "d" / "f").stat().st_mode & 0o7777 == 0o644
    assert [name for name in os.listxattr(exported / "d") if name.startswith("user.")] == []
    assert [name for name in os.listxattr(exported / "d" / "f") if name.startswith("user.")] == []


def test_sealing_while_everything_changes(blank: tuple[Rig, int]) -> None:
    rig, view = blank
    storm = """
import os, subprocess, sys
code = '''
import os, time
end = time.time() + 1
n = 0
while time.time() < end:
    n += 1
    try:
        os.makedirs(f"d{n % 7}/e", exist_ok=True)
        open(f"d{n % 7}/e/f{n % 5}", "w").write("x" * (n % 10000))
        os.rename(f"d{n % 7}/e", f"d{(n + 1) % 7}/g{n % 3}")
        os.unlink(f"d{(n + 1) % 7}/g{n % 3}/f{n % 5}")
        os.rmdir(f"d{(n + 2) % 7}")
    except OSError:
        pass
'''
subprocess.Popen([sys.executable, '-I', '-S', '-c', code])
"""
    rig.inside(view, storm)
    sealed = 0
    for _ in range(25):
        with contextlib.suppress(Trouble):  # a tree that keeps being rearranged is refused
            rig.seal(view)
            sealed += 1
    assert sealed > 10
    rig.close(view)
    left = "answer = [str(path) for path in (*store.paths.trash.iterdir(), *store.paths.views.iterdir())]"
    wait_until(lambda: rig.evaluate(f"store.collect(); {left}") == [], "the end of what still writes")


@pytest.mark.parametrize("durably", [False, True])
def test_a_change_through_a_memory_map_is_not_missed(blank: tuple[Rig, int], durably: bool) -> None:
    """Its first write moves the file's ctime; further writes to the same page do so only once it was written out."""
    rig, view = blank
    begin = "import mmap, sys; f = open('m', 'w+b'); f.truncate(4096); sys.kept = mmap.mmap(f.fileno(), 4096)"
    rig.inside(view, begin)
    sealed = []
    for number in range(5):
        rig.inside(view, f"import sys, time; time.sleep(0.02); sys.kept[0:1] = b'{number}'; time.sleep(0.02)")
        sealed.append(rig.seal(view, durably))
    found = [(Path(rig.export(snapshot)) / "m").read_bytes()[:1] for snapshot in sealed]
    assert found == [b"0", b"1", b"2", b"3", b"4"]


def test_a_change_with_an_old_time_is_not_missed(blank: tuple[Rig, int]) -> None:
    rig, view = blank
    sealed = []
    for number in range(4):
        rig.inside(view, f"import os, time; open('f', 'w').write('{number}'); os.utime('f', (5, 5)); time.sleep(0.02)")
        sealed.append(rig.seal(view))
    assert [(Path(rig.export(snapshot)) / "f").read_text() for snapshot in sealed] == ["0", "1", "2", "3"]


def test_files_that_look_alike_are_not_mixed_up(blank: tuple[Rig, int]) -> None:
    """Two directories change places: in each, the file of that name has the size and time of the other's."""
    rig, view = blank
    rig.inside(
        view,
        "import os, time\n"
        "for name in 'ab': os.mkdir(name); open(name + '/f', 'w').write(name); os.utime(name + '/f', (5, 5))\n"
        "time.sleep(0.05)",
    )
    rig.seal(view)
    rig.inside(view, "import os; os.rename('a', 'c'); os.rename('b', 'a'); os.rename('c', 'b')")
    exported = Path(rig.export(rig.seal(view)))
    assert [(exported / name / "f").read_text() for name in "ab"] == ["b", "a"]


def test_unchanged_files_are_shared_between_seals_and_never_with_the_view(blank: tuple[Rig, int]) -> None:
    rig, view = blank
    rig.inside(view, "open('big', 'w').write('x' * 10_000_000)\nimport time; time.sleep(0.05)")
    rig.seal(view)
    before = rig.evaluate("answer = store.used_bytes()")
    rig.inside(view, "open('small', 'w').write('x')")
    rig.seal(view)
    assert rig.evaluate("answer = store.used_bytes()") - before < 100_000
    where = "v.tree or v.directory / 'upper'"
    assert rig.evaluate(f"import os; v = views[{view}]; answer = os.stat(({where}) / 'big').st_nlink") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make these")
def test_devices_and_protected_files(tmp_path: Path) -> None:
    with Rig(SETTINGS[0]) as rig:
        rig.evaluate("import os; (root / 'source').mkdir(); os.mknod(root / 'source/null', 0o20666, os.makedev(1, 3))")
        rig.evaluate("import os; os.mknod(root / 'source/nothing', 0o20666, os.makedev(0, 0))")
        snapshot = rig.import_tree(f"{rig.root}/source")
        assert sorted(rig.evaluate(f"answer = store.snapshot({snapshot!r}).skipped")) == ["nothing", "null"]
        view = rig.open(snapshot)
        rig.inside(
            view,
            "import subprocess; open('f', 'w').write('x'); open('program', 'w').write('x')\n"
            "import os; os.chmod('program', 0o6755); subprocess.run(['chattr', '+i', 'f'], check=True)",
        )
        exported = Path(rig.export(rig.seal(view)))
        assert sorted(os.listdir(exported)) == ["f", "program"]
        assert (exported / "program").stat().st_mode & 0o7777 == 0o755
        rig.close(view)
        assert rig.evaluate("answer = [*store.paths.views.iterdir(), *store.paths.trash.iterdir()]") == []


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="as root")
def test_a_hundred_thousand_levels_and_half_a_million_files(tmp_path: Path) -> None:
    with Rig(SETTINGS[0]) as rig:
        rig.evaluate("(root / 'source').mkdir()")
        view = rig.open(rig.import_tree(f"{rig.root}/source"))
        rig.inside(view, DIG.format(depth=100_000))
        rig.inside(view, "import os; os.mkdir('wide')\nfor i in range(500_000): open(f'wide/{i}', 'w').close()")
        sealed = rig.seal(view)
        assert rig.evaluate(f"answer = store.snapshot({sealed!r}).layers[0][1]") == 600_002
        rig.inside(view, "import os; os.chdir('/')")
        rig.close(view)
        rig.evaluate("for snapshot in store.snapshots(): store.remove(snapshot.id)")
        assert layers_left(rig) == 0
