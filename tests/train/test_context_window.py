"""A window that is shorter or longer than the model's own: it is in the weights' configuration, so learner, sampler and
checkpoints go by it."""

import json
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from gametape.core.config import ContextConfig, RunConfig, TinyConfig
from gametape.core.errors import BadInput
from gametape.train.context_window import read_model_config
from gametape.train.policy import create_tiny_policy, load_policy
from gametape.train.run_directory import read_metrics
from gametape.train.training import run_training

OWN = 128


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("short") / "model"
    create_tiny_policy(directory, TinyConfig(layers=1, width=16, heads=2, window=OWN), seed=3)
    return directory


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_a_longer_window_samples_and_trains(model: Path, tmp_path: Path, kind: str) -> None:
    """The policy knows nothing, so that it goes on to the end of its turns: far beyond the window that it had."""
    config = RunConfig.model_validate(
        {
            "arm": "rlvr",
            "model": str(model),
            "tasks": "worlds:easy",
            "episodes": 4,
            "context": {"tokens": 4 * OWN, "rope_scaling": kind},
            "rl": {"groups": 1, "group_size": 2, "resample": 1.0, "turn_tokens": 64},
            "eval": {"every": 0, "episodes": 1},
        }
    )
    run_training(config, tmp_path / "run")
    updates = [entry for entry in read_metrics(tmp_path / "run" / "metrics.jsonl") if entry["kind"] == "update"]
    assert [entry["episodes"] for entry in updates] == [2, 4]
    weights = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1] / "model"
    for place in (tmp_path / "run" / "start", weights):
        policy = load_policy(place)
        assert policy.context_length == policy.network.config.max_position_embeddings == 4 * OWN
        rope = policy.network.config.rope_parameters
        assert (rope["rope_type"], rope["factor"]) == (kind, 4.0)
        scaled = policy.network.model.rotary_emb.inv_freq
        assert not scaled.equal(load_policy(model).network.model.rotary_emb.inv_freq)
    told = AutoModelForCausalLM.from_pretrained(weights).config
    assert told.max_position_embeddings == 4 * OWN, "what transformers itself reads"


def test_a_shorter_window_scales_nothing(model: Path) -> None:
    short = read_model_config(model, ContextConfig(tokens=64, rope_scaling="yarn"))
    assert (short.max_position_embeddings, short.rope_parameters["rope_type"]) == (64, "default")
    same = read_model_config(model, ContextConfig())
    assert same.to_dict() == read_model_config(model, ContextConfig(tokens=OWN)).to_dict()


def test_what_cannot_be_longer_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"256 is more than .* window of {OWN}; give context.rope_scaling = yarn"):
        read_model_config(model, ContextConfig(tokens=256))
    written = json.loads((model / "config.json").read_text())
    rope = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    (tmp_path / "config.json").write_text(json.dumps({**written, "rope_parameters": rope}))
    with pytest.raises(BadInput, match="scaled positions already"):
        read_model_config(tmp_path, ContextConfig(tokens=256, rope_scaling="yarn"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_positions": OWN}))
    with pytest.raises(BadInput, match="no rotary positions"):
        read_model_config(tmp_path, ContextConfig(tokens=256, rope_scaling="yarn"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="not a model"):
        read_model_config(tmp_path, ContextConfig())
