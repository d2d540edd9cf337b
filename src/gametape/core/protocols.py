"""The seams of the package as protocols: what a tool, a workspace, an environment, an engine, a rollout source, a
learner and an annotator must do, wherever they run.

Whatever may wait is asynchronous, and nothing assumes that two sides share memory: on a cluster the same objects become
actors. What core cannot name (tensors, batches, rollout groups, directories) is a type variable.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Protocol, Self, TypeVar

from gametape.core.environment import EpisodeScore
from gametape.core.errors import GametapeError
from gametape.core.messages import CommandResult, GenerateRequest, Generation, Sampling, ToolResult, WeightUpdate

JsonObject = dict[str, object]

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
BatchT_contra = TypeVar("BatchT_contra", contravariant=True)
SampleT_contra = TypeVar("SampleT_contra", contravariant=True)
EpisodeT_contra = TypeVar("EpisodeT_contra", contravariant=True)
WeightsT_contra = TypeVar("WeightsT_contra", contravariant=True)
WeightsT_co = TypeVar("WeightsT_co", covariant=True)
GroupT_co = TypeVar("GroupT_co", covariant=True)
MetricsT_co = TypeVar("MetricsT_co", covariant=True)
LogprobsT_co = TypeVar("LogprobsT_co", covariant=True)
DirectoryT_contra = TypeVar("DirectoryT_contra", contravariant=True)
GroupT = TypeVar("GroupT")


class ShellResult(Protocol):
    """The result of a command in a workspace's shell, which keeps running."""

    @property
    def exit_code(self) -> int: ...

    @property
    def stdout(self) -> str: ...

    @property
    def stderr(self) -> str: ...

    @property
    def killed_by(self) -> str | None: ...

    @property
    def directory(self) -> str:
        """The shell's working directory after the command."""
        ...

    @property
    def shell_restarted(self) -> bool: ...

    @property
    def cpu_seconds(self) -> float: ...


class Workspace(Protocol):
    """The files and the shell of one attempt. Hostile code may run in it; it can be saved, restored and forked."""

    async def shell(self, command: str, wall_seconds: float | None = None) -> ShellResult:
        """Run a command in the workspace's one shell: directory and variables stay for the next command."""
        ...

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult: ...

    async def put(self, path: str, content: bytes) -> None: ...

    async def get(self, path: str) -> bytes: ...

    async def snapshot(self) -> str:
        """Save the file tree and name what was saved."""
        ...

    async def restore(self, snapshot: str) -> None: ...

    async def fork(self, snapshot: str) -> Self:
        """A new workspace that starts from a snapshot; this one is not changed."""
        ...

    async def close(self) -> None: ...


class Tool(Protocol):
    """A function that the agent may call. `definition` is the description for the model, with a JSON schema."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> JsonObject: ...

    async def call(self, arguments: JsonObject, workspace: Workspace) -> ToolResult:
        """Bad arguments are answered with what was wrong, never raised."""
        ...


class Environment(Protocol):
    """One prompt with its tools, its starting state and its score. It can be attempted any number of times, also at the
    same time."""

    @property
    def name(self) -> str:
        """The same for the same prompt, in any process."""
        ...

    @property
    def bucket(self) -> str:
        """The family that the prompt is drawn from; prompts that never recur are counted together by it."""
        ...

    @property
    def system_prompt(self) -> str: ...

    @property
    def user_prompt(self) -> str: ...

    @property
    def max_turns(self) -> int:
        """How many turns an attempt may take."""
        ...

    def tools(self) -> Sequence[Tool]: ...

    async def reset(self) -> Workspace:
        """A new workspace in its starting state. The caller closes it."""
        ...

    async def score(self, workspace: Workspace) -> EpisodeScore: ...


class PolicyEngine(Protocol):
    """Samples tokens. Engines inherit from this class, so that what they do not need has its default."""

    async def generate(self, request: GenerateRequest) -> Generation: ...

    async def score(
        self,
        ids: Sequence[int],  # noqa: ARG002
        start: int = 1,  # noqa: ARG002
        sampling: Sampling = Sampling(),  # noqa: ARG002, B008 - frozen
    ) -> list[float] | None:
        """The log-probability of each id from `start` on, in the distribution that `sampling` states, given the ids
        before it. None where the engine cannot score."""
        return None

    async def update_weights(self, update: WeightUpdate) -> None:
        """Load published weights. Returns once every token sampled from now on comes from these or newer ones."""
        ...

    def weights_changed(self, version: int) -> None:
        """The owner of the tensors has changed them in place; they are of this version now."""
        raise GametapeError(f"{type(self).__name__}: version {version}: weights cannot be changed in place")

    def pause_for_update(self, version: int | None = None) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """Inside, nothing is sampled, so that the owner of the tensors may change them. An engine with a thread of its
        own overrides this."""
        return nullcontext()

    def forget(self) -> None:
        """Drop what was computed before, so that what comes next does not depend on it."""
        return

    async def policy_version(self) -> int: ...

    def participant(self) -> AbstractContextManager[None]:
        """Inside, the caller is counted among those that will ask again soon. An engine that steps only when all of
        them wait overrides this."""
        return nullcontext()


class RolloutSource(Protocol[RequestT_contra, GroupT_co, WeightsT_contra]):
    """Gives finished, scored groups of rollouts with the versions of the weights that sampled them."""

    def order(self, request: RequestT_contra) -> None:
        """Ask for a group. Groups are sampled in the order of their requests, as far as there is room."""
        ...

    async def take(self) -> GroupT_co:
        """The next finished group of those ordered."""
        ...

    def finished(self) -> Sequence[GroupT_co]:
        """The ordered groups that can be had without waiting."""
        ...

    async def publish(self, version: int, weights: WeightsT_contra) -> None:
        """Sample with these weights from now on."""
        ...

    async def close(self) -> None: ...


class Learner(Protocol[BatchT_contra, SampleT_contra, MetricsT_co, LogprobsT_co, WeightsT_co, DirectoryT_contra]):
    """Turns batches into new weights."""

    @property
    def parameters(self) -> int:
        """How many numbers the policy has."""
        ...

    @property
    def device(self) -> str:
        """Where it computes: `cpu`, `cuda:0`."""
        ...

    def update(self, batch: BatchT_contra, step: int, version: int, spent: float = 0.0) -> MetricsT_co:
        """Learn from a batch. `step` counts updates from 0; `spent` is the used share of the budget."""
        ...

    def score(self, samples: Sequence[SampleT_contra]) -> Sequence[LogprobsT_co]:
        """The log-probabilities of each sample's chosen tokens under the current weights."""
        ...

    def publish(self) -> WeightsT_co:
        """The current weights, for `RolloutSource.publish`."""
        ...

    def save(self, directory: DirectoryT_contra) -> "Future[None]":
        """Write what it needs to continue from here, and a model that others load, into a directory. It has copied all
        of that when it returns; the result is there when all is written."""
        ...

    def load(self, directory: DirectoryT_contra) -> None:
        """Continue from what was written there."""
        ...

    @property
    def ended(self) -> "Future[None]":
        """Gets an exception if the learner ends by itself, such as when a process of it was killed."""
        ...

    def close(self) -> None: ...


class Annotator(Protocol[GroupT, EpisodeT_contra]):
    """Adds to a finished group what it finds in its episodes, such as targets for distillation."""

    async def annotate(self, group: GroupT, episodes: Sequence[EpisodeT_contra]) -> GroupT: ...


class NoteStore(Protocol):
    """The agent's memory: a scratch file in training, the vault in a thread."""

    async def names(self) -> list[str]: ...

    async def read(self, name: str) -> str | None: ...

    async def write(self, name: str, text: str) -> None: ...
