"""A tree with everything in it comes back as it was."""

import os
import stat
from pathlib import Path

from tests.sandbox.snapshots.rig import Rig

BUILD = r"""
import os, socket
os.makedirs(root / 'source/empty/er')
os.chdir(root / 'source')
def put(name, data, mode=0o644):
    with open(name, 'wb') as file:
        file.write(data)
    os.chmod(name, mode)
put('plain', b'text')
put('program', b'#!/bin/sh', 0o755)
put('closed', b'secret', 0)
put('set-id', b'x', 0o6755)
put(b'new\nline \x1b[31m', b'1')
put(b'invalid \xff\xfe', b'2')
put('n' * 255, b'3')
put('empty-file', b'')
put('attributed', b'4')
os.setxattr('attributed', 'user.colour', b'blue\0')
os.setxattr('attributed', 'user.overlay.opaque', b'y')
os.setxattr('empty', 'user.overlay.opaque', b'y')
os.setxattr('empty', 'user.overlay.redirect', b'/elsewhere')
os.link('plain', 'empty/same')
os.symlink('/etc/passwd', 'outside')
os.symlink('loop', 'loop')
os.symlink('x' * 4000, 'long')
os.mkfifo('pipe', 0o640)
with open('sparse', 'wb') as file:
    file.truncate(1 << 30)
    file.seek(1 << 29)
    file.write(b'in the middle')
socket.socket(socket.AF_UNIX).bind('socket')
os.mkdir('unreadable')
put('unreadable/file', b'5')
os.utime('plain', ns=(1, 1234567890123456789))
os.utime('long', ns=(1, 1111111111123456789), follow_symlinks=False)
os.chmod('unreadable', 0)
os.chmod('empty', 0o1777)
os.utime('empty', ns=(1, 1000000000000000001))
os.utime('.', ns=(1, 1000000000000000002))
"""


def test_everything_comes_back(rig: Rig) -> None:
    rig.evaluate(BUILD)
    first = rig.import_tree(f"{rig.root}/source")
    assert rig.evaluate(f"answer = store.snapshot({first!r}).skipped") == ["socket"]
    view = rig.open(first)
    rig.inside(view, "open('new', 'w').write('new')")
    second = rig.seal(view)
    for snapshot in (first, second):
        exported = Path(rig.export(snapshot))
        compare(rig.root / "source", exported)
        assert (exported / "new").exists() == (snapshot == second)
    assert rig.evaluate(f"answer = store.diff({first!r}, {second!r})") == {"new": "added"}
    rig.close(view)
    for snapshot in (first, second):
        rig.evaluate(f"store.remove({snapshot!r})")
    left = "answer = [*store.paths.layers.iterdir(), *store.paths.trash.iterdir()]"
    assert rig.evaluate(left) == []
    assert rig.evaluate("store.collect(); answer = store.used_bytes()") == 0


def compare(source: Path, exported: Path) -> None:
    wanted = {os.fsencode(path.relative_to(source)) for path in source.rglob("*")} - {b"socket"}
    found = {os.fsencode(path.relative_to(exported)) for path in exported.rglob("*")} - {b"new"}
    assert found == wanted
    for name in wanted:
        one, other = os.path.join(os.fsencode(source), name), os.path.join(os.fsencode(exported), name)
        before, after = os.lstat(one), os.lstat(other)
        assert after.st_mode == before.st_mode & ~0o6000, name
        assert after.st_mtime_ns == before.st_mtime_ns, name
        if stat.S_ISREG(before.st_mode):
            assert after.st_size == before.st_size
            assert after.st_blocks <= before.st_blocks + 16
            if before.st_size < 1 << 20:
                assert Path(os.fsdecode(one)).read_bytes() == Path(os.fsdecode(other)).read_bytes()
        if stat.S_ISLNK(before.st_mode):
            assert os.readlink(one) == os.readlink(other)
        else:
            kept = {"user.colour": b"blue\0"} if name == b"attributed" else {}
            assert {key: os.getxattr(other, key) for key in os.listxattr(other) if key.startswith("user.")} == kept
    with (exported / "sparse").open("rb") as file:
        file.seek(1 << 29)
        assert file.read(13) == b"in the middle"
    assert (exported / "plain").samefile(exported / "empty" / "same")
    assert (exported / "plain").stat().st_nlink == 2


def test_a_mode_that_shuts_out_its_owner_is_left_as_it_was(rig: Rig) -> None:
    rig.evaluate("(root / 'source').mkdir()")
    snapshot = rig.import_tree(f"{rig.root}/source")
    view = rig.open(snapshot)
    rig.inside(
        view,
        "import os; os.makedirs('a/b/c'); open('a/b/c/f', 'w').write('x'); os.chmod('a/b/c/f', 0)\n"
        "for name in ('a/b/c', 'a/b', 'a'): os.chmod(name, 0)",
    )
    sealed = rig.seal(view)
    sealed = rig.seal(view)
    shown = rig.evaluate(f"import os; v = views[{view}]; answer = str(v.tree or v.directory / 'upper')")
    for place in (Path(shown), Path(rig.export(sealed))):
        modes = [stat.S_IMODE((place / name).stat().st_mode) for name in ("a", "a/b", "a/b/c", "a/b/c/f")]
        assert modes == [0, 0, 0, 0]
    rig.close(view)
    assert rig.evaluate("answer = list(store.paths.views.iterdir())") == []
