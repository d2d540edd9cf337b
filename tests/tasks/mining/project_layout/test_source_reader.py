import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.tasks.mining.project_layout import source_reader
from gametape.tasks.mining.project_layout.source_reader import read_project_source

PLAIN = {"pkg/__init__.py": b"x = 1\n", "tests/test_pkg.py": b"def test_x(): pass\n"}


def packed(path: Path, files: dict[str, bytes], top: str = "pkg-1.0/", mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(content)
            member.mode = 0o755 if name.endswith(".sh") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return path


def laid(directory: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz", "w"])
def test_an_archive_is_read_without_its_top_directory(tmp_path: Path, mode: str) -> None:
    tree = read_project_source(packed(tmp_path / "pkg.tar", {**PLAIN, "run.sh": b"#!/bin/sh\n"}, mode=mode))
    assert dict(tree.files) == {**PLAIN, "run.sh": b"#!/bin/sh\n"}
    assert tree.executable == {"run.sh"}


def test_a_zip_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pkg.zip", "w") as archive:
        for name, content in PLAIN.items():
            archive.writestr(f"pkg-1.0/{name}", content)
        link = zipfile.ZipInfo("pkg-1.0/link.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert dict(read_project_source(tmp_path / "pkg.zip").files) == PLAIN


def test_a_directory_is_read_like_the_archive_of_it(tmp_path: Path) -> None:
    assert read_project_source(laid(tmp_path / "a", PLAIN)) == read_project_source(packed(tmp_path / "a.tar.gz", PLAIN))


LEFT_OUT = [
    ".git/config",
    ".hg/store",
    "pkg/__pycache__/a.cpython-311.pyc",
    "pkg/old.pyc",
    "pkg/fast.cpython-311-x86_64-linux-gnu.so",
    "pkg.egg-info/SOURCES.txt",
    "src/pkg-1.0.dist-info/METADATA",
    ".tox/py/lib/pkg.py",
    "build/lib/pkg/__init__.py",
    "dist/pkg-1.0.whl",
    "node_modules/x/index.js",
    ".mypy_cache/3.11/a.json",
    ".ruff_cache/x",
    ".pytest_cache/v/x",
    ".hypothesis/x",
    "htmlcov/index.html",
    ".coverage",
    ".eggs/x.py",
    ".idea/workspace.xml",
    "pkg/a.py.orig",
    ".git",
    "tests/data/submodule/.git",
]


@pytest.mark.parametrize("path", LEFT_OUT)
def test_what_is_no_part_of_a_code_base_is_left_out(tmp_path: Path, path: str) -> None:
    files = {**PLAIN, path: b"secret"}
    assert dict(read_project_source(laid(tmp_path / "a", files)).files) == PLAIN
    assert dict(read_project_source(packed(tmp_path / "a.tar.gz", files)).files) == PLAIN


@pytest.mark.parametrize("path", ["pkg/build/__init__.py", "pkg/dist/__init__.py", ".coveragerc", ".github/x.yml"])
def test_what_only_looks_like_it_stays(tmp_path: Path, path: str) -> None:
    assert path in read_project_source(laid(tmp_path / "a", {**PLAIN, path: b""}))


def test_environments_are_left_out_whatever_they_are_called(tmp_path: Path) -> None:
    files = {**PLAIN, "mine/pyvenv.cfg": b"", "mine/lib/python3.11/site-packages/pkg/__init__.py": b""}
    assert dict(read_project_source(laid(tmp_path / "a", files)).files) == PLAIN
    assert dict(read_project_source(packed(tmp_path / "a.tar.gz", files)).files) == PLAIN


def test_what_an_archive_says_about_itself_is_kept_for_the_finder(tmp_path: Path) -> None:
    labels = {"PKG-INFO": b"Name: pkg\n", "pkg.egg-info/top_level.txt": b"pkg\n"}
    assert set(read_project_source(packed(tmp_path / "a.tar.gz", {**PLAIN, **labels}))) == {*PLAIN, *labels}


def test_links_are_not_followed(tmp_path: Path) -> None:
    laid(tmp_path / "a", PLAIN)
    (tmp_path / "secret.py").write_text("secret")
    (tmp_path / "a/link.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "a/loop").symlink_to(tmp_path / "a")
    assert dict(read_project_source(tmp_path / "a").files) == PLAIN
    with tarfile.open(packed(tmp_path / "a.tar", PLAIN, mode="w"), "a") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"pkg-1.0/link{kind.decode()}.py")
            member.type, member.linkname = kind, "../../secret.py"
            archive.addfile(member)
    assert dict(read_project_source(tmp_path / "a.tar").files) == PLAIN


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "a/../../evil.py"])
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="leads outside"):
        read_project_source(packed(tmp_path / "a.tar.gz", {name: b""}, top=""))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(BadInput, match="leads outside"):
        read_project_source(tmp_path / "a.zip")


def test_a_file_cannot_be_a_directory_too(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a file and a directory"):
        read_project_source(packed(tmp_path / "a.tar.gz", {"a": b"", "a/b": b""}))


@pytest.mark.parametrize(
    "content", [b"", b"no archive\n", b"\x1f\x8bno gzip", b"BZhno", b"PK\x03\x04no zip", b"\0" * 99]
)
def test_bytes_that_are_no_archive_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.tar\.gz: ") as caught:
        read_project_source(tmp_path / "a.tar.gz")
    assert "\n" not in str(caught.value)


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    whole = packed(tmp_path / "a.tar.gz", {**PLAIN, "data": os.urandom(50_000)}).read_bytes()
    for part in (20, 1000, len(whole) // 2, len(whole) - 9):
        (tmp_path / "cut.tar.gz").write_bytes(whole[:part])
        with pytest.raises(BadInput):
            read_project_source(tmp_path / "cut.tar.gz")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is nothing"):
        read_project_source(tmp_path / "missing")
    with pytest.raises(BadInput, match="neither"):
        read_project_source(Path("/dev/null"))
    with pytest.raises(BadInput, match="clone or download it"):
        read_project_source(Path("https://example.invalid/a/b"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = packed(tmp_path / "a.tar.gz", {f"pkg/{number}.py": bytes(1 << 20) for number in range(20)})
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.py", bytes(20 << 20))
    laid(tmp_path / "a", {"a.py": bytes(3 << 20)})
    monkeypatch.setattr(source_reader, "MAX_SOURCE_BYTES", 2 << 20)
    for path in (bomb, tmp_path / "a.zip", tmp_path / "a"):
        with pytest.raises(BadInput, match="too large"):
            read_project_source(path)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"pkg/m{number}.py": b"" for number in range(30)}
    monkeypatch.setattr(source_reader, "MAX_SOURCE_FILES", 20)
    for path in (packed(tmp_path / "a.tar.gz", files), laid(tmp_path / "a", files)):
        with pytest.raises(BadInput, match="too large"):
            read_project_source(path)


def test_a_directory_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root reads everything")
    laid(tmp_path / "a", PLAIN)
    (tmp_path / "a/pkg").chmod(0)
    with pytest.raises(BadInput, match="cannot be read"):
        read_project_source(tmp_path / "a")
