"""Directories of weights that were made to do something else than be loaded."""

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from gametape.core.errors import BadInput
from gametape.engines.torch.build import open_torch_model

from .tiny import CHATML, write_directory

CODE: dict[str, Any] = {"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}}


def refused(directory: Path, config: dict[str, Any]) -> None:
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="not a model that can be loaded") as error:
        open_torch_model(write_directory(directory, CHATML), "own")
    assert "\n" not in str(error.value)


def test_code_that_comes_with_weights_is_never_run_whatever_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    refused(tmp_path, CODE)
    assert not (tmp_path / "ran").exists()


class Runs:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def test_a_pickle_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Runs(tmp_path / "ran"), protocol=2))
    refused(tmp_path, {"model_type": "llama"})
    assert not (tmp_path / "ran").exists()


def test_a_config_of_nonsense_is_bad_input(tmp_path: Path) -> None:
    refused(tmp_path, {"model_type": "llama", "hidden_size": "wide"})
