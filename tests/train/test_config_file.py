"""Configurations from files: an error names its line."""

from pathlib import Path

import pytest

from gametape.core.config import RLConfig, RunConfig
from gametape.core.errors import BadInput
from gametape.train.config_file import config_from_mapping, config_to_toml, default_config_toml, read_config

GOOD = 'arm = "rlvr"\ntasks = "worlds:moderate"\n\n[rl]\ngroups = 4\n'


def write_config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_what_is_set_on_the_command_line_wins(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, GOOD), ["rl.groups=2", "model=runs/a", "optim.learning_rate=1e-3"])
    assert (config.rl.groups, config.model, config.optim.learning_rate) == (2, "runs/a", 1e-3)


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        (GOOD + "groupes = 4\n", [], "line 6: rl.groupes: there is no such setting; did you mean rl.groups?"),
        (
            GOOD,
            ["rl.lenght=3"],
            "--set: rl.lenght: there is no such setting; did you mean rl.normalizer_tokens?",
        ),
        (
            GOOD,
            ["rl.learning_rate=3"],
            "did you mean warm.learning_rate or optim.learning_rate? (there are: group",
        ),
        (GOOD, ["zzz=3"], "--set: zzz: there is no such setting (there are: schema_version, arm, model"),
        (GOOD, ["arm=ppo"], "MODULE:CLASS, which names an algorithm of your own"),
        (GOOD, ["ttf.judge=gpt"], "--set: ttf.judge: expected openai:MODEL@URL, policy or scripted:FILE"),
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
def test_bad_ones_are_refused_in_one_line(tmp_path: Path, text: str, changes: list[str], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_config(write_config(tmp_path, text), changes)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_configuration_survives_being_written(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, GOOD), ["eval.stop_at=0.9", "seed=7"])
    assert read_config(write_config(tmp_path, config_to_toml(config))) == config


def test_the_printed_defaults_are_the_defaults(tmp_path: Path) -> None:
    printed = read_config(write_config(tmp_path, default_config_toml()))
    assert printed == RunConfig(arm="rlvr", tasks="worlds:moderate")
    assert "# Rollouts of one prompt, which are each other's baseline." in default_config_toml()


OLD = """arm = "rlvr_ttf"
tasks = "worlds:moderate"

[warm]
made_up = 0.5

[optim]
portion = 4096

[rl]
length = 48

[ttf]
length = 24
alone = 0.5
per_group = 2
mixed = false
stored = 7
learn = "resample"
spoiled = 0.25

[eval]
rehearsed = 8

[alarms]
lost = 0.3
mismatch = 0.1

[reward]
recorded = "runs"
"""


def test_a_file_from_before_keys_were_renamed_still_loads(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, OLD), ["optim.portion=2048", "ttf.replay_capacity=9"])
    ttf = config.ttf
    assert (ttf.normalizer_tokens, ttf.hint_only_lr_scale, ttf.annotated_per_group) == (24, 0.5, 2)
    assert (ttf.annotate_mixed_groups, ttf.replay_capacity, ttf.objective) == (False, 9, "resample")
    assert (ttf.control_share, config.warm.made_up_hint_share, config.rl.normalizer_tokens) == (0.25, 0.5, 48)
    assert (config.optim.micro_batch_tokens, config.eval.forgetting_probe_size) == (2048, 8)
    assert (config.alarms.infra_error_rate, config.alarms.logprob_mismatch) == (0.3, 0.1)
    assert config.reward.recorded_trajectories == "runs"
    assert read_config(write_config(tmp_path, config_to_toml(config))) == config


def test_an_old_key_is_found_in_its_line_and_is_refused_beside_the_new_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"line 5: rl\.normalizer_tokens: expected greater than or equal to 1"):
        read_config(write_config(tmp_path, GOOD.replace("groups = 4", "length = 0")))
    with pytest.raises(BadInput, match=r"rl\.length: there is no such setting"):
        read_config(write_config(tmp_path, GOOD + "length = 5\nnormalizer_tokens = 6\n"))


def test_an_arm_may_name_a_class_and_have_a_table_of_its_own(tmp_path: Path) -> None:
    text = 'arm = "my.module:MyAlgorithm"\ntasks = "worlds:easy"\n\n[algorithm]\nbonus = 0.5\nnames = ["a", "b"]\n'
    config = read_config(write_config(tmp_path, text))
    assert (config.arm, config.algorithm) == ("my.module:MyAlgorithm", {"bonus": 0.5, "names": ["a", "b"]})
    assert read_config(write_config(tmp_path, config_to_toml(config))) == config


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"no_such": 1}, "config: no_such: there is no such setting (there are: schema_version, arm, model"),
        ({"rl": {"lenght": 1}}, "config: rl.lenght: there is no such setting; did you mean rl.normalizer_tokens?"),
        ({"arm": "ppo"}, "config: arm: expected 'sft'"),
        ({"arm": "ppo"}, "MODULE:CLASS"),
        ({"episodes": "many"}, "config: episodes: expected a valid integer"),
    ],
)
def test_a_mapping_is_refused_in_the_same_words(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        config_from_mapping({"arm": "rlvr", "tasks": "worlds:easy"} | wrong)
    assert says in str(refused.value)


def test_odd_texts_and_nested_tables_survive_being_written(tmp_path: Path) -> None:
    config = RunConfig(
        arm="m:C", tasks='a "b" \\ \x7f\tü', algorithm={"a.b": {"c": [1, {"d": 2.5}]}, "é": True, "line": "1\n2"}
    )
    assert read_config(write_config(tmp_path, config_to_toml(config))) == config
    with pytest.raises(BadInput, match="a value that TOML cannot hold"):
        config_to_toml(RunConfig(arm="m:C", tasks="t", algorithm={"a": [None]}))


def _defaults(config: RunConfig) -> tuple[float, int, int, int]:
    return config.optim.learning_rate, config.rl.turn_tokens, config.rl.normalizer_tokens, config.eval.episodes


TINY, LARGER = (3e-4, 16, 64, 256), (5e-6, 1024, 2048, 64)


def test_defaults_go_by_the_kind_of_model() -> None:
    assert _defaults(RunConfig(arm="rlvr", tasks="worlds:easy")) == TINY
    assert _defaults(RunConfig(arm="rlvr", tasks="worlds:easy", model="runs/tiny")) == TINY
    assert _defaults(RunConfig(arm="rlvr", tasks="worlds:easy", model="smollm2")) == LARGER
    assert _defaults(RunConfig(arm="rlvr", tasks="examples/tasks", model="runs/larger")) == LARGER


def test_what_is_set_wins_over_the_default_of_the_kind(tmp_path: Path) -> None:
    given = {"arm": "rlvr", "tasks": "examples/tasks", "model": "smollm2", "rl": {"turn_tokens": 99}}
    assert _defaults(config_from_mapping(given)) == (5e-6, 99, 2048, 64)
    section = RunConfig(
        arm="rlvr", tasks="examples/tasks", model="smollm2", rl=RLConfig(turn_tokens=98, normalizer_tokens=7)
    )
    assert _defaults(section) == (5e-6, 98, 7, 64)
    text = 'arm = "rlvr"\ntasks = "examples/tasks"\nmodel = "smollm2"\n'
    config = read_config(write_config(tmp_path, text), ["optim.learning_rate=1e-3"])
    assert _defaults(config) == (1e-3, 1024, 2048, 64)
    again = read_config(write_config(tmp_path, config_to_toml(config)), ["model=tiny"])
    assert _defaults(again) == (1e-3, 1024, 2048, 64)
