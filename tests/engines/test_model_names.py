"""What a name may reach for."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import find_weights, resolve_model
from gametape.engines.token_conversation import TokenModel

from .tiny import CHATML, tiny_network, write_directory


@pytest.mark.parametrize("local_only", [True, False])
def test_a_hub_is_not_asked_where_nothing_may_leave(
    tmp_path: Path, local_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked: list[dict[str, Any]] = []

    def download(name: str, **how: Any) -> str:
        asked.append({"name": name, **how})
        raise OSError("not to be had")

    monkeypatch.setattr(hub, "snapshot_download", download)
    with pytest.raises(MissingDependency, match="the hub did not give it"):
        resolve_model("someone/something", tmp_path, EgressPolicy(local_only=local_only))
    assert asked == [{"name": "someone/something", "local_files_only": local_only}]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smolm2", "did you mean smollm2?"),
        ("opnai:gpt", "did you mean openai:gpt?"),
        ("scripted:exprt", "did you mean scripted:expert?"),
        ("./weights", "no such directory"),
        ("runs/policy", "no such directory"),
    ],
)
def test_a_name_that_is_none_is_bad_input(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=re.escape(says)):
        resolve_model(name, tmp_path, scripts={"expert": lambda: []})


def test_a_directory_without_weights_is_refused_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gametape.engines.torch.build", None)
    with pytest.raises(BadInput, match=r"there are no weights of a model in it \(no config\.json\)"):
        resolve_model(str(tmp_path), tmp_path)


def test_a_port_that_cannot_be_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no port 99999"):
        resolve_model("openai:some@http://127.0.0.1:99999/v1", tmp_path)


def test_a_directory_of_weights_is_run_by_the_embedded_engine(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    opening = pytest.importorskip("gametape.engines.torch.build")
    tiny_network(402).save_pretrained(tmp_path)
    model = resolve_model(str(write_directory(tmp_path, CHATML)), tmp_path)
    assert isinstance(model, TokenModel)
    assert isinstance(model.engine, opening.TorchEngine)
    asyncio.run(model.close())


WHOLE = ("state.json", "optimizer.safetensors", "model/model.safetensors")
OLD = ("state.json", "optimizer.safetensors", "model.safetensors")
"""Before weights had a directory of their own."""


def test_a_training_run_stands_for_its_last_whole_checkpoint(tmp_path: Path) -> None:
    assert find_weights(tmp_path) == tmp_path
    saved = tmp_path / "checkpoints"
    for name, files in {
        "00000100": WHOLE,
        "00000200": WHOLE,
        "00000300": WHOLE[:1],
        ".00000400.x": WHOLE,
    }.items():
        (saved / name).mkdir(parents=True)
        for file in files:
            (saved / name / file).parent.mkdir(exist_ok=True)
            (saved / name / file).touch()
    assert find_weights(tmp_path) == find_weights(saved / "00000200") == saved / "00000200" / "model"


def test_a_run_of_an_earlier_version_has_its_weights_beside_its_state(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoints" / "00000100"
    checkpoint.mkdir(parents=True)
    for file in OLD:
        (checkpoint / file).touch()
    assert find_weights(tmp_path) == find_weights(checkpoint) == checkpoint


def test_a_run_without_a_checkpoint_has_no_weights_yet(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(BadInput, match="no checkpoint yet"):
        find_weights(tmp_path)
