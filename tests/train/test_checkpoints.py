"""Checkpoints: whole or not there, written beside what comes next."""

import json
import pickle
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gametape.core.config import OptimConfig, RunConfig, TTFConfig
from gametape.core.errors import BadInput
from gametape.engines.model_names import list_checkpoints
from gametape.train.checkpoints import CheckpointNotSaved, CheckpointWriter, clear_unfinished, latest, load_state
from gametape.train.learner import LocalLearner
from tests.train.saved import save_checkpoint
from tests.train.sharded.families import batch_of, policy_of


def learner(updates: int = 0) -> LocalLearner:
    config = RunConfig(
        arm="rlvr_ttf", tasks="worlds:easy", optim=OptimConfig(learning_rate=1e-2), ttf=TTFConfig(teacher="ema")
    )
    made = LocalLearner(policy_of("llama"), config)
    for step in range(updates):
        made.update(batch_of(step), step, step)
    return made


def assert_same_next_update(one: LocalLearner, other: LocalLearner) -> None:
    assert one.update(batch_of(9), 9, 9) == other.update(batch_of(9), 9, 9)
    weights = other.policy.weights()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in one.policy.weights().items())


def test_it_comes_back_as_it_was_however_learning_goes_on(tmp_path: Path) -> None:
    """What is copied when the call returns is what is written."""
    first, same, after = learner(2), learner(2), learner()
    writer = CheckpointWriter(tmp_path, keep=2)
    writer.begin(3, {"step": 3}, first.save)
    first.update(batch_of(5), 5, 5)
    saved = writer.finish()
    assert saved == tmp_path / "00000003" == latest(tmp_path)
    assert load_state(saved) == {"step": 3}
    assert sorted(path.name for path in saved.iterdir()) == ["files.json", "model", "shards", "state.json"]
    after.load(saved)
    assert_same_next_update(after, same)


def test_it_is_there_only_when_all_of_it_is_written(tmp_path: Path) -> None:
    written: Future[None] = Future()
    writer = CheckpointWriter(tmp_path, keep=2)
    writer.begin(1, {}, lambda _directory: written)
    assert latest(tmp_path) is None
    threading.Timer(0.1, lambda: written.set_result(None)).start()
    assert writer.finish() == latest(tmp_path) == tmp_path / "00000001"


def test_one_of_an_earlier_version_still_loads(tmp_path: Path) -> None:
    first, same, after = learner(2), learner(2), learner()
    saved = tmp_path / "00000003"
    (saved / "model").mkdir(parents=True)
    save_file({name: one.clone() for name, one in first.policy.weights().items()}, saved / "model/model.safetensors")
    save_file({name: one.clone() for name, one in first.optimizer.tensors().items()}, saved / "optimizer.safetensors")
    save_file({name: one.clone() for name, one in first.algorithm.tensors().items()}, saved / "teacher.safetensors")
    assert latest(tmp_path) is None
    (saved / "state.json").write_text("{}")
    assert latest(tmp_path) == saved
    after.load(saved)
    assert_same_next_update(after, same)


def test_the_last_few_are_kept(tmp_path: Path) -> None:
    some = learner(1)
    for step in range(4):
        save_checkpoint(tmp_path, step, some, keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["00000002", "00000003"]


def test_what_was_half_written_is_never_taken_for_one(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, learner(1))
    (tmp_path / ".00000002.0a0b0c0d").mkdir()
    assert latest(tmp_path) == tmp_path / "00000001"
    clear_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


@pytest.mark.parametrize("name", ["shards/__0_0.distcp", "shards/.metadata", "model/model.safetensors", "files.json"])
def test_a_torn_one_is_passed_over(tmp_path: Path, name: str) -> None:
    some = learner(1)
    for step in (1, 2):
        save_checkpoint(tmp_path, step, some)
    torn = tmp_path / "00000002" / name
    torn.write_bytes(torn.read_bytes()[:-1])
    assert latest(tmp_path) == tmp_path / "00000001"
    torn.unlink()
    assert latest(tmp_path) == tmp_path / "00000001"


def test_damage_is_told(tmp_path: Path) -> None:
    saved = save_checkpoint(tmp_path, 1, learner(1))
    shard = saved / "shards" / "__0_0.distcp"
    shard.write_bytes(bytes(shard.stat().st_size))
    with pytest.raises(BadInput, match="not a checkpoint that can be read"):
        learner().load(saved)


def test_metadata_that_names_anything_else_is_not_called(tmp_path: Path) -> None:
    saved = save_checkpoint(tmp_path, 1, learner(1))

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path(tmp_path / "called").mkdir, ())  # type: ignore[return-value]

    (saved / "shards" / ".metadata").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(BadInput, match="not a checkpoint that can be read: its metadata names"):
        learner().load(saved)
    assert not (tmp_path / "called").exists()


def test_a_full_disk_leaves_the_last_one_intact(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the write fails in the middle of the large file."""
    program = f"""
import resource, signal
from pathlib import Path
from gametape.train.checkpoints import CheckpointNotSaved
from tests.train.saved import save_checkpoint
from tests.train.test_checkpoints import learner
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
place = Path({str(tmp_path)!r})
some = learner(1)
save_checkpoint(place, 1, some)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    save_checkpoint(place, 2, some)
except CheckpointNotSaved as error:
    print(error)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "checkpoint 2 could not be written" in output
    assert f"{tmp_path / '00000001'} is intact" in output
    assert len(output.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]
    sizes = json.loads((tmp_path / "00000001" / "files.json").read_text())
    assert max(sizes.values()) > 20_000
    learner().load(tmp_path / "00000001")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointNotSaved, match="there is none before it"):
        save_checkpoint(tmp_path / "file" / "checkpoints", 1, learner())
