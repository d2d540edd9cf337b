"""What surrounds the agent of a thread: its model, its tools, and the checkpoints it shares with its forks."""

import sys
from collections.abc import Iterable
from pathlib import Path

from gametape.agent.tools import standard_tools
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.core.protocols import Tool
from gametape.core.trajectory import Trajectory
from gametape.desk.outbox import Outbox
from gametape.desk.threads.beginning import CHECKPOINT_BYTES
from gametape.desk.threads.drafting import Draft
from gametape.desk.threads.thread import Thread, names, place_of
from gametape.desk.turn_keys import TurnKeys
from gametape.desk.vault.notes import VaultNotes, vault_tools
from gametape.desk.vault.vault import Vault
from gametape.engines.conversation import Model
from gametape.engines.naming import resolve
from gametape.engines.perimeter import Perimeter
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.toolbox import Toolbox


def perimeter_of(thread: Thread, record: Trajectory) -> Perimeter:
    """What may leave this machine: what the thread's file says, and what its record says that it was begun with."""
    ours = (record.agent.extra or {}).get("gametape") or {}
    return Perimeter(local_only=thread.local_only or bool(ours.get("local_only")))


def open_model(home: Path, thread: Thread, record: Trajectory, perimeter: Perimeter) -> Model:
    """The model that the thread was begun with, and no other."""
    model = resolve(thread.model, home, perimeter)
    if perimeter.local_only and not model.local:
        raise BadInput(f"{thread.model}: not on this machine, and {thread.thread_id} is to stay here")
    if model.name != record.agent.model_name:
        raise BadInput(f"{thread.thread_id} was begun with {record.agent.model_name}, not with {model.name}")
    return model


def tools_of(thread: Thread, work: Work, home: Path, outbox: Outbox, history: bool, longest: float) -> list[Tool]:
    """The standard tools over its sandbox, notes over its vault, drafts for the outbox."""
    notes = VaultNotes(Vault.open(Path(thread.vault)), thread.thread_id, lambda: work.turn)
    drafts = TurnKeys(thread.thread_id, lambda: work.turn, "draft")
    standard = standard_tools(work, toolbox=Toolbox(home), python=sys.executable, history=history, longest=longest)
    return [*standard, *vault_tools(notes), Draft(outbox, drafts)]


def tidy(home: Path, thread: Thread, store: SnapshotStore, kept: Iterable[str]) -> None:
    """Drop old checkpoints where they take too much room, but of no thread of the family the first or the last."""
    if store.used_bytes() <= CHECKPOINT_BYTES // 2:
        return
    keep = set(kept)
    for name in names(home):
        place = place_of(home, name)
        if place.read().store == thread.store:
            checkpoints = [step.ours.checkpoint for step in place.recorded().steps if step.ours.checkpoint]
            keep |= {checkpoints[0], checkpoints[-1]}
    store.collect(keep, max_bytes=CHECKPOINT_BYTES // 2)
