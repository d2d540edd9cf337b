"""The one assembly of an agent session that survives its process: recorded steps, checkpoints, a sandbox, a rollout.

`gametape solve`, goals and threads open their sessions here. `RolloutConfig` says what the agent works with; what
differs between the three is only the starting tree, the prompts and who asks for the end. Episodes of training and
evaluation keep nothing on disk: `episode.py` runs them on the same `RolloutConfig`.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gametape.agent.recorder import StepRecorder
from gametape.agent.replay import active_record, checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.scheduler import RewindableWorkspace, SandboxScheduler
from gametape.sandbox.snapshots.store import SnapshotStore

CHECKPOINT_BYTES = 2 << 30
"""What the checkpoints of one session may take on disk; old ones are dropped when half of it is used."""

Prompts = tuple[str, str]
"""The system prompt and the first user prompt."""


def open_checkpoints(directory: Path) -> SnapshotStore:
    return SnapshotStore(directory, max_bytes=CHECKPOINT_BYTES)


def with_checkpoints(config: RolloutConfig, store: SnapshotStore, keep: Iterable[str] = ()) -> RolloutConfig:
    """The same, with constraints checked on what changed between checkpoints, and old checkpoints dropped where they
    take too much room. Those in `keep` stay."""
    return replace(
        config,
        changed_paths=store.diff,
        prune_checkpoints=lambda current: store.collect([*current, *keep], max_bytes=CHECKPOINT_BYTES // 2),
    )


@asynccontextmanager
async def open_workspace(
    store: SnapshotStore, recorder: StepRecorder, sandbox: SandboxSpec, import_start: Callable[[], str] | None = None
) -> AsyncIterator[RewindableWorkspace]:
    """A live sandbox on the last recorded checkpoint, or on the snapshot of `import_start` where none is recorded yet.
    Raises `BadInput` where there is neither."""
    async with SandboxScheduler(store=store) as scheduler:
        begin = None if _has_checkpoint(recorder) else import_start
        start = begin() if begin else checkpoint_at(active_record(recorder))[0]
        yield await scheduler.open_snapshot(start, sandbox)


async def start_rollout(
    config: RolloutConfig, workspace: RewindableWorkspace, recorder: StepRecorder, prompts: Callable[[], Prompts]
) -> Rollout:
    """Resume the recorded rollout after its last finished turn, or begin one with these prompts."""
    if _has_checkpoint(recorder):
        return await Rollout.resume(config, workspace, recorder)
    return await Rollout.begin(config, workspace, recorder, *prompts())


def _has_checkpoint(recorder: StepRecorder) -> bool:
    return any(step.gametape_extra.checkpoint for step in recorder.steps)
