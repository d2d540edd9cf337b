"""Configurations from files: what is wrong is said with its line."""

from pathlib import Path

import pytest

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.train.config_file import config_to_toml, default_config_toml, read_config

GOOD = 'arm = "rlvr"\ntasks = "worlds:moderate"\n\n[rl]\ngroups = 4\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_what_is_set_on_the_command_line_wins(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, GOOD), ["rl.groups=2", "model=runs/a", "optim.learning_rate=1e-3"])
    assert (config.rl.groups, config.model, config.optim.learning_rate) == (2, "runs/a", 1e-3)


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (GOOD + "groupes = 4\n", [], "line 6: rl.groupes: expected no such field (there are: group_size"),
        (GOOD + "group_size = 1\n", [], "line 6: rl.group_size: expected greater than or equal to 2"),
        (GOOD.replace("rlvr", "ppo"), [], "line 1: arm: expected 'sft'"),
        ('tasks = "worlds:easy"\n', [], "run.toml: arm: expected a value"),
        (GOOD, ["tiny.layers=1_000_000"], "--set: tiny.layers: expected less than or equal to 32"),
        (GOOD, ["rl.groups=no"], "--set: rl.groups: expected a valid integer"),
        (GOOD, ["groups"], "--set groups: expected KEY=VALUE"),
        (GOOD, ["arm.x=1"], "arm is no table"),
        ("arm = \n", [], "not TOML"),
    ],
)
def test_bad_ones_are_refused_in_one_line(tmp_path: Path, text: str, changes: list[str], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_config(written(tmp_path, text), changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_configuration_survives_being_written(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, GOOD), ["eval.stop_at=0.9", "seed=7"])
    assert read_config(written(tmp_path, config_to_toml(config))) == config


def test_the_printed_defaults_are_the_defaults(tmp_path: Path) -> None:
    printed = read_config(written(tmp_path, default_config_toml()))
    assert printed == RunConfig(arm="rlvr", tasks="worlds:moderate")
    assert "# Rollouts of one prompt, which are each other's baseline." in default_config_toml()
