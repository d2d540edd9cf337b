"""What a run is refused for before torch is loaded."""

import json
from pathlib import Path

import pytest

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, MissingDependency
from gametape.train.early_checks import FROM_PYTHON, check_early, check_free, check_resumable_here


def config(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"arm": "rlvr", "tasks": "worlds:easy", **settings})


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ((), "no config.json"),
        (("config.json",), "no weights"),
        (("config.json", "model.safetensors"), "no tokenizer"),
    ],
)
def test_a_directory_without_a_whole_model(tmp_path: Path, files: tuple[str, ...], says: str) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(BadInput, match=says):
        check_early(config(model=str(tmp_path)), tmp_path)


def test_what_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="gametape models fetch smollm2"):
        check_early(config(model="smollm2"), tmp_path)
    with pytest.raises(BadInput, match="katas:FAMILY"):
        check_early(config(tasks="katas:poems"), tmp_path)
    with pytest.raises(BadInput, match=r"no such suite; .*katas:FAMILY"):
        check_early(config(tasks=str(tmp_path / "none")), tmp_path)
    with pytest.raises(BadInput, match="recorded_trajectories"):
        check_early(config(reward={"recorded_trajectories": str(tmp_path / "none")}), tmp_path)
    with pytest.raises(BadInput, match=r"tiny\.window"):
        check_early(config(context={"tokens": 512}), tmp_path)


def test_a_run_with_objects_goes_on_from_python(tmp_path: Path) -> None:
    check_resumable_here(tmp_path, config())
    with pytest.raises(BadInput, match=r"with environments from Python; go on with it there: gametape\.train_policy"):
        check_resumable_here(tmp_path, config(tasks="environments given from Python"))
    (tmp_path / FROM_PYTHON).write_text(json.dumps({"given": ["environments", "reward"]}))
    with pytest.raises(BadInput, match=r"environments and reward from Python.*environments=\.\.\., reward=\.\.\.\)"):
        check_resumable_here(tmp_path, config())


def test_a_directory_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    check_free(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(BadInput, match="not empty"):
        check_free(tmp_path)
