"""Which directories hold third-party Python code, in directories made for it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.sandbox import mounts, third_party_python
from gametape.sandbox.mounts import MaskedPath, Mount
from gametape.sandbox.policy import SandboxPolicy


def lay_out(top: Path, *files: str) -> Path:
    for name in files:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for directory in (top, *top.parents):
        if directory.stat().st_uid == os.getuid():
            directory.chmod(directory.stat().st_mode | 0o001)
    return top


def hidden_below(root: Path) -> list[str]:
    return [str(Path(directory).relative_to(root)) for directory in third_party_python.find_third_party([str(root)])]


def test_conventional_names_are_found_outermost_only(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        *("python3/dist-packages/pip/_vendor/rich/cells.py", "tool/third_party/six.py", "one/deep/er/_vendor/x/y.py"),
    )
    assert hidden_below(root) == ["one/deep/er/_vendor", "python3/dist-packages", "tool/third_party"]


def test_names_that_other_languages_use_too_count_with_python_below(tmp_path: Path) -> None:
    assert hidden_below(lay_out(tmp_path, "gem/vendor/a.rb", "gem/third_party/b/c.js", "app/vendor/d/e.pyc")) == [
        "app/vendor"
    ]
    (tmp_path / "python3" / "site-packages").mkdir(parents=True)
    assert "python3/site-packages" in hidden_below(tmp_path)  # which may be filled at any time


def test_what_packages_leave_beside_them_gives_them_away(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        *("a/lib/requests/api.py", "a/lib/requests-2.0.dist-info/METADATA", "b/spare/pip-1-py3-none-any.whl"),
        *("c/gyp/pyproject.toml", "c/gyp/pylib/packaging/tags.py", "d/dist-info/x.dist-info/METADATA"),
    )
    assert hidden_below(root) == ["a/lib", "b/spare", "c/gyp"]


def test_a_standard_library_stays_but_not_what_was_put_into_it(tmp_path: Path) -> None:
    inside = ("site-packages/x.py", "ensurepip/_bundled/pip-1-py3-none-any.whl", "lib/_vendor/x.py", "a/_vendor/y.py")
    own = ("os.py", "site.py", "wsgiref.egg-info", "test/__init__.py", "test/setup.py", "json/__init__.py")
    root = lay_out(tmp_path, *(f"python3.11/{name}" for name in (*own, *inside)))
    assert hidden_below(root) == [f"python3.11/{name}" for name in sorted(os.path.dirname(one) for one in inside)]


def test_an_application_full_of_copies_is_hidden_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(tmp_path, *(f"sdk/{name}/third_party/six.py" for name in "abc"), "sdk/d/lib/six.py")
    assert hidden_below(root) == ["sdk"]
    libraries = tmp_path / "ld.so.cache"
    libraries.write_bytes(f"\0{root}/sdk/libx.so\0".encode())
    monkeypatch.setattr(third_party_python, "_KNOWN_LIBRARIES", str(libraries))
    assert hidden_below(root) == [f"sdk/{name}/third_party" for name in "abc"]  # programs need the rest


def test_links_and_closed_doors_are_passed_by(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "root", "open/_vendor/a.py", "closed/_vendor/b.py")
    lay_out(tmp_path / "other", "site-packages/c.py")
    (root / "link").symlink_to(tmp_path / "other")
    (root / "loop").symlink_to(root)
    (root / "closed").chmod(0o700)
    assert hidden_below(root) == ["open/_vendor"]
    assert third_party_python.find_third_party([str(root / "missing"), str(root / "loop")]) == ()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    third_party_python.third_party_directories.cache_clear()
    yield tmp_path / "gametape" / "strangers.json"
    third_party_python.third_party_directories.cache_clear()


def asked_again() -> tuple[str, ...]:
    third_party_python.third_party_directories.cache_clear()
    return third_party_python.third_party_directories()


def test_the_walk_is_kept_for_the_next_process(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = third_party_python.third_party_directories()
    monkeypatch.setattr(third_party_python, "find_third_party", lambda roots: ("/usr/walked",))
    assert asked_again() == first
    kept = json.loads(cache.read_text())
    for wrong in (
        *("", "{", "[]", "null", '{"state": 1}', json.dumps({**kept, "paths": 3}), json.dumps({**kept, "time": "x"})),
        *(json.dumps({**kept, **other}) for other in ({"state": "old"}, {"time": 0}, {"paths": ["/etc"]})),
    ):
        cache.write_text(wrong)
        assert asked_again() == ("/usr/walked",), wrong
        assert json.loads(cache.read_text())["paths"] == ["/usr/walked"]
    assert os.listdir(cache.parent) == [cache.name]


def test_who_has_no_place_to_keep_it_walks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(third_party_python, "find_third_party", lambda roots: ("/usr/walked",))
    assert asked_again() == ("/usr/walked",)


def test_an_application_that_comes_or_goes_is_noticed(tmp_path: Path) -> None:
    root = lay_out(tmp_path, "one/a.py")
    before = third_party_python._state([str(root)])
    assert third_party_python._state([str(root)]) == before
    lay_out(tmp_path, "two/b.py")
    assert third_party_python._state([str(root)]) != before


def covers(policy: SandboxPolicy, monkeypatch: pytest.MonkeyPatch, *directories: str) -> list[MaskedPath]:
    monkeypatch.setattr(mounts, "third_party_directories", lambda: directories)
    monkeypatch.setattr(mounts, "inside_third_party", lambda own: ())
    return mounts.masked_paths(policy, mounts.granted_mounts(policy, None))


def test_a_grant_at_or_above_hidden_code_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = "/usr/share/doc"
    assert covers(SandboxPolicy(), monkeypatch, directory, "/usr/no/such") == [MaskedPath(directory, directory=True)]
    assert covers(SandboxPolicy(read_only=(directory,)), monkeypatch, directory) == []
    assert covers(SandboxPolicy(read_only=("/usr/share/",)), monkeypatch, directory) == []
    assert covers(SandboxPolicy(read_only=("/usr/share",), hidden=(directory,)), monkeypatch, directory) == [
        MaskedPath(directory, True)
    ]


def test_the_interpreter_that_runs_gametape_keeps_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = "/usr/share/doc"
    monkeypatch.setattr(mounts, "third_party_directories", lambda: (directory,))
    monkeypatch.setattr(third_party_python, "third_party_directories", lambda: (directory,))
    monkeypatch.setattr(mounts.sys, "path", [directory, f"{directory}/no/such", "/usr/lib", "relative"])
    own = SandboxPolicy()
    assert Mount(directory, directory) in mounts.granted_mounts(own, None)
    assert mounts.masked_paths(own, mounts.granted_mounts(own, None)) == []
    other = SandboxPolicy(python=False)
    assert mounts.masked_paths(other, mounts.granted_mounts(other, None)) == [MaskedPath(directory, directory=True)]
