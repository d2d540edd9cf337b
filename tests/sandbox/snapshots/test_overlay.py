"""Mounting a view the way the keeper does."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.sandbox.snapshots import overlay
from tests.sandbox.snapshots.rig import SETTINGS, Rig, Setting, worker_command


@pytest.mark.skipif(os.geteuid() != 0, reason="ID-mapped mounts are for root")
def test_a_user_that_owns_nothing_owns_the_view_and_root_the_files(tmp_path: Path) -> None:
    done = subprocess.run(worker_command(False, "mapped", str(tmp_path)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    first, second = answer["seen"]
    assert first == {"owners": [1_900_000_321], "names": ["changed", "directory", "kept", "removed"], "store": []}
    assert second == {"owners": [1_900_000_321], "names": ["changed", "directory", "kept", "new"], "store": []}
    assert answer["owners"] == [0]
    expected = {"changed": "modified", "removed": "deleted", "new": "added", "directory/file": "modified"}
    assert answer["changes"] == expected
    assert (tmp_path / "exported" / "changed").read_text() == "changed 1 2"


def test_the_keeper_can_load_it_with_the_standard_library_alone() -> None:
    """Nothing but the standard library and `kernel` is imported, and it takes no site packages."""
    source = Path(overlay.__file__)
    imported = [
        node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imported}
    assert {name for name in names if name and name.partition(".")[0] not in sys.stdlib_module_names} == {
        "gametape.sandbox"
    }


def test_more_layers_than_a_mount_can_name_are_refused() -> None:
    plan = overlay.MountPlan("/", tuple(f"layers/{n:016x}/tree" for n in range(200)), "u", "w", ())
    with pytest.raises(ValueError, match="200 layers"):
        plan.data()


@pytest.mark.parametrize("setting", SETTINGS[:2], ids=str)
def test_what_is_synced_inside_costs_nothing_and_seals_are_whole_all_the_same(setting: Setting) -> None:
    with Rig(setting) as rig:
        rig.evaluate("(root / 'source').mkdir()")
        view = rig.open(rig.import_tree(f"{rig.root}/source"))
        assert "volatile" in rig.evaluate(f"answer = views[{view}].mount.options")
        rig.inside(view, "import os; f = open('f', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno())")
        sealed = rig.evaluate(f"answer = store.seal(views[{view}])")
        assert (Path(rig.export(sealed)) / "f").read_text() == "x"
