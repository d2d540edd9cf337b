"""What can be known of a run before torch is loaded: it is refused in a moment then, and not after a minute."""

import json
from importlib.util import find_spec
from pathlib import Path

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, MissingDependency
from gametape.engines import smollm2
from gametape.engines.model_names import EMBEDDED_MODEL, find_weights
from gametape.evals.suite import WORLDS_PREFIX
from gametape.record.installation import install_extra
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.backend import SandboxSpec, open_backend, require_capabilities
from gametape.tasks.worlds.spec import preset
from gametape.train.training_tasks import training_tasks

CONFIG, LOCK = "config.toml", ".lock"
FROM_PYTHON = "from-python.json"
"""The file of a run directory that names what the run was given as objects, by `gametape.train_policy`."""
ENVIRONMENTS_FROM_PYTHON = "environments given from Python"
"""In place of `tasks`, where a run's environments are objects."""
TINY, SANDBOX = "tiny", "bubblewrap"
TINY_KNOWS_WORLDS = "model: a tiny policy knows the words of worlds only; give worlds:NAME as tasks"
_NEEDED = ("torch", "transformers")
_WEIGHTS = ("*.safetensors", "*.bin")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")


def check_early(config: RunConfig, home: Path) -> None:
    """Raise what the run would be refused for."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingDependency(f"training needs {' and '.join(missing)}: {install_extra('train')}")
    if config.model != TINY:
        find_model(config.model, home)
    elif config.context.tokens:
        raise BadInput("context.tokens: a tiny policy has tiny.window")
    if _has_tasks(config, home):
        if config.model == TINY:
            raise BadInput(TINY_KNOWS_WORLDS)
        require_capabilities(SANDBOX, open_backend(SANDBOX).probe(), SandboxSpec().requires)
    recorded = config.reward.recorded_trajectories
    if recorded and not Path(recorded).is_dir():
        raise BadInput(f"reward.recorded_trajectories: {recorded}: no such directory")


def find_model(name: str, home: Path) -> Path:
    """The directory that the weights and the tokenizer of a run's model lie in."""
    if name == EMBEDDED_MODEL:
        if not smollm2.is_fetched(home):
            raise MissingDependency(f"model: {name} is not here yet; fetch it with: gametape models fetch {name}")
        return smollm2.model_directory(home)
    if not Path(name).is_dir():
        raise BadInput(f"model: {name}: no such directory; give tiny, smollm2, weights or a run")
    weights = find_weights(Path(name))
    if not (weights / "config.json").is_file():
        raise BadInput(f"model: {name}: there is no model in it (no config.json)")
    if not any(any(weights.glob(pattern)) for pattern in _WEIGHTS):
        raise BadInput(f"model: {name}: there are no weights in it (no .safetensors)")
    if not any((weights / file).is_file() for file in _TOKENIZER):
        raise BadInput(f"model: {name}: there is no tokenizer in it")
    return weights


def holds_run(root: Path) -> bool:
    return (root / CONFIG).exists() and ((root / "start").exists() or (root / "checkpoints").exists())


def check_free(root: Path) -> None:
    """A run that never got beyond its configuration is no run."""
    if holds_run(root):
        raise BadInput(f"{root}: there is a run here already; a new run needs a directory of its own")
    if root.is_dir() and any(path.name not in (CONFIG, LOCK, FROM_PYTHON) for path in root.iterdir()):
        raise BadInput(f"{root}: is not empty; a run needs a new directory")


def check_resumable_here(root: Path, config: RunConfig) -> None:
    """Refuse a run that the command line cannot make again, with what goes on with it."""
    parts = ["environments"] if config.tasks == ENVIRONMENTS_FROM_PYTHON else []
    if (root / FROM_PYTHON).exists():
        parts = json.loads((root / FROM_PYTHON).read_bytes())["given"]
    if parts:
        again = ", ".join(f"{part}=..." for part in parts)
        raise BadInput(
            f"{root}: the run was begun by gametape.train_policy with {' and '.join(parts)} from Python; go on with it "
            f"there: gametape.train_policy(config, {str(root)!r}, {again})"
        )


def _has_tasks(config: RunConfig, home: Path) -> bool:
    """Whether these are tasks in sandboxes, and not worlds. Raises `BadInput` for what is not to be trained on."""
    if config.tasks.startswith(WORLDS_PREFIX):
        preset(config.tasks.removeprefix(WORLDS_PREFIX))
        return False
    return isinstance(training_tasks(config, home)[0], LoadedTask)
