"""What is printed to be typed can be typed: in this installation, with names that a shell would take apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.record.installation import command_line, install_extra, what_to_install


def installed_from(origin: dict[str, object] | None, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gametape be installed from somewhere else, as pip records it."""
    info = directory / "site" / "gametape-9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gametape\nVersion: 9\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(info.parent))


def test_the_command_has_its_path_where_the_path_variable_does_not_lead_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sys.executable).with_name("gametape")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert subprocess.run(["sh", "-c", command_line("--version")], check=False).returncode == 0
    assert command_line("doctor") == f"{own} doctor"
    monkeypatch.setenv("PATH", f"{own.parent}{os.pathsep}/usr/bin")
    assert command_line("doctor") == "gametape doctor"


def test_words_that_a_shell_would_take_apart_are_quoted() -> None:
    assert command_line("train", "--resume", Path("my runs/it's")).endswith("""train --resume 'my runs/it'"'"'s'""")


def test_an_extra_comes_from_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "constraints.txt").write_text("")
    installed_from({"url": clone.as_uri(), "dir_info": {"editable": True}}, tmp_path, monkeypatch)
    pins = clone / "constraints.txt"
    assert install_extra("train") == f"{sys.executable} -m pip install -c '{pins}' -e '{clone}[train]'"
    assert what_to_install("torch") == install_extra("train")


def test_an_extra_comes_from_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "gametape-9-py3-none-any.whl"
    wheel.write_bytes(b"")
    installed_from({"url": wheel.as_uri(), "archive_info": {}}, tmp_path, monkeypatch)
    assert install_extra("otel") == f"{sys.executable} -m pip install '{wheel}[otel]'"


@pytest.mark.parametrize("origin", [None, {"url": "file:///nowhere/gametape.whl"}, {"url": "https://example.org/x"}])
def test_without_a_place_that_is_there_it_is_the_name(
    origin: dict[str, object] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_from(origin, tmp_path, monkeypatch)
    assert install_extra("train") == f"{sys.executable} -m pip install 'gametape[train]'"
