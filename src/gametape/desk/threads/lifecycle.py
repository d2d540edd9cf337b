"""Creating and forking threads, and recording their outcome. A thread works on a copy of its workspace."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gametape.agent.limits import RolloutLimits
from gametape.agent.prompts import INSTRUCTIONS_FILE, build_system_prompt, file_tree, standing_instructions
from gametape.agent.recorder import message_step, new_trajectory
from gametape.agent.replay import active_steps, as_copied_context, checkpoint_at
from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.threads.thread import Thread, ThreadDirectory, new_thread_id, thread_directory, threads_root
from gametape.desk.vault.vault import Vault
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model
from gametape.record.directory_walk import walk
from gametape.record.journal import Journal
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.sandbox.snapshots.store import SnapshotStore

CHECKPOINT_BYTES = 2 << 30
"""The disk space for the checkpoints of a thread and its forks; old ones are deleted when half of it is used."""
_MAX_LISTED = 5_000
_SYSTEM_PROMPT = """\
You are an agent in a conversation that goes on for days. You work on the files below /workspace, in a sandbox without \
network, for the person you talk with.
Do what you are asked with your tools, and say briefly what you are about to do. Calls that do not depend on each \
other can be made in one turn. When you have the answer, or need one, say it without calling a tool: that ends your \
turn, and the person reads it.
What will matter later goes into your notes (remember); look there first (recall). Nothing you write leaves this \
machine unless the person releases it (draft)."""


async def create_thread(
    home: Path,
    thread: Thread,
    instructions: str = "",
    egress: EgressPolicy | None = None,
) -> ThreadDirectory:
    """Create a thread and copy its files. Its model is opened once, so that an unknown name is refused now."""
    name = await resolve_model_name(home, thread.model, egress or EgressPolicy(local_only=thread.local_only))
    Vault.init(Path(thread.vault))
    directory = ThreadDirectory(threads_root(home) / thread.thread_id)
    directory.root.mkdir(parents=True)
    try:
        if instructions:
            directory.instructions.write_text(instructions, encoding="utf-8", errors="replace")
        workspace = Path(thread.workspace) if thread.workspace else None
        with SnapshotStore(directory.store_of(thread), max_bytes=CHECKPOINT_BYTES) as store:
            checkpoint = _import_workspace(store, workspace)
        text = _system_text(workspace, instructions, thread)
        first = message_step(1, "system", text, checkpoint=checkpoint)
        Journal.create(directory.journal, _header(thread, name, [first])).release()
        directory.write(thread)
    except BaseException:
        remove_tree(directory.root)
        raise
    return directory


def fork_thread(home: Path, thread_id: str, at: int | None = None, title: str | None = None) -> ThreadDirectory:
    """A new thread with the same steps and files up to a step. The steps are copied, the checkpoints are shared."""
    origin = thread_directory(home, thread_id)
    thread, record = origin.read(), origin.load_trajectory()
    shared = active_steps(record.steps, at)
    checkpoint, work = checkpoint_at(shared, at)
    with SnapshotStore(origin.store_of(thread)) as store:
        store.snapshot(checkpoint)
    forked = thread.model_copy(
        update={
            "thread_id": new_thread_id(),
            "title": title if title is not None else thread.title,
            "created": time.time(),
            "forked_from": f"{thread.thread_id}, step {shared[-1].step_id}",
            "paused": None,
            "archived": False,
        }
    )
    directory = ThreadDirectory(threads_root(home) / forked.thread_id)
    directory.root.mkdir(parents=True)
    try:
        if origin.instructions.exists():
            shutil.copyfile(origin.instructions, directory.instructions)
        Vault.open(Path(thread.vault)).reads.inherit(forked.thread_id, thread.thread_id, work.turn)
        steps = [as_copied_context(step, number) for number, step in enumerate(shared, start=1)]
        Journal.create(directory.journal, _header(forked, record.agent.model_name or "", steps)).release()
        directory.write(forked)
    except BaseException:
        remove_tree(directory.root)
        raise
    return directory


def _header(thread: Thread, model_name: str, steps: Sequence[Step]) -> Trajectory:
    """The record itself holds `local_only`: editing thread.json does not lift it."""
    extra = {"local_only": thread.local_only}
    about = {"thread": thread.thread_id, **({"network_hosts": list(thread.hosts)} if thread.hosts else {})}
    return new_trajectory(thread.thread_id, model_name, about, agent_extra=extra, steps=steps)


async def resolve_model_name(home: Path, model_name: str, egress: EgressPolicy) -> str:
    """The name that a model reports; an unknown one is refused. Local weights are not loaded for this."""
    if Path(model_name).is_dir() or (home / "models" / model_name).is_dir():
        return model_name
    model = resolve_model(model_name, home, egress)
    try:
        if egress.local_only and not model.local:
            raise BadInput(f"{model_name}: not on this machine, and the thread is local-only")
        return model.name
    finally:
        await model.close()


def _import_workspace(store: SnapshotStore, workspace: Path | None) -> str:
    if workspace is not None:
        return store.import_tree(workspace)
    with tempfile.TemporaryDirectory(prefix="gametape-empty-") as empty:
        return store.import_tree(Path(empty))


def _system_text(workspace: Path | None, instructions: str, thread: Thread) -> str:
    instruction_files: list[tuple[str, str]] = []
    parts: list[str] = []
    if workspace is not None:
        paths = list(_paths(workspace))
        files = {path: (workspace / path).read_bytes() for path in paths if path.split("/")[-1] == INSTRUCTIONS_FILE}
        instruction_files = standing_instructions(files)
        parts.append(f"Files in /workspace when the conversation began:\n{file_tree(paths)}")
    if instructions.strip():
        instruction_files.append(("given with the thread", instructions))
    turns = thread.max_turns or RolloutLimits().turns
    parts.append(f"Each of your answers may take {turns} turns; you are told when little is left of a budget.")
    constraints = thread.constraints.describe()
    system = build_system_prompt(instruction_files, constraints, _SYSTEM_PROMPT, thread.hosts)
    return "\n\n".join([system, *parts])


def _paths(workspace: Path) -> Iterator[str]:
    """The files of a directory, without links and hidden directories."""
    listed = 0
    for top, below, files in walk(workspace):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(files):
            file = Path(top) / name
            if listed < _MAX_LISTED and file.is_file() and not file.is_symlink():
                listed += 1
                yield file.relative_to(workspace).as_posix()


def record_outcome(trajectory: Path, succeeded: bool) -> None:
    """Record in the vault whether the thread of this trajectory succeeded. Other trajectories are ignored."""
    directory = ThreadDirectory(trajectory.absolute().parent)
    if directory.thread_file.is_file() and directory.trajectory.name == trajectory.name:
        thread = directory.read()
        Vault.init(Path(thread.vault)).reads.record_outcome(thread.thread_id, succeeded)
