"""A live sandbox whose file tree can be saved, restored and forked.

A snapshot is the files, whatever wrote them: shell side effects included. Processes are not saved. Restoring starts a
new sandbox on the old tree, with its shell in the directory where it was at the snapshot.
"""

from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.result import SessionResult
from gametape.sandbox.session import ShellSession, open_session
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.sandbox.snapshots.store_layout import SnapshotView


class RewindableSession:
    """One session and its snapshots. Not for use by several threads at once."""

    def __init__(self, store: SnapshotStore, snapshot: str, spec: SandboxSpec, backend: str = "bubblewrap") -> None:
        self._store = store
        self._spec = spec
        self._backend = backend
        self._directories: dict[str, str] = {}
        self.start = snapshot
        self._view: SnapshotView
        self._session: ShellSession
        self._open(snapshot)

    @property
    def session(self) -> ShellSession:
        """The current session; another one after `restore`."""
        return self._session

    def run(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        return self._session.run(command, wall_seconds)

    def snapshot(self, durably: bool = True) -> str:
        """Save the tree as it is between two commands; background jobs are paused meanwhile."""
        with self._session.paused():
            name = self._store.seal(self._view, durably)
        self._directories[name] = self._session.directory
        return name

    def restore(self, snapshot: str) -> None:
        """Go back to a snapshot. Running processes are killed; if the snapshot cannot be opened, nothing changes."""
        session, view = self._session, self._view
        self._open(snapshot)
        session.close()
        self._store.close_view(view)

    def fork(self, snapshot: str | None = None) -> "RewindableSession":
        """A second session from a snapshot, or from the current state. This one is not changed."""
        child = RewindableSession(self._store, snapshot or self.snapshot(durably=False), self._spec, self._backend)
        child._directories.update(self._directories)
        return child

    def close(self) -> None:
        self._session.close()
        self._store.close_view(self._view)

    def __enter__(self) -> "RewindableSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, snapshot: str) -> None:
        view = self._store.open_view(snapshot)
        source = {"view": view.mount, "workspace": None} if view.mount else {"workspace": view.tree, "view": None}
        try:
            directory = self._directories.get(snapshot)
            session = open_session(self._spec.model_copy(update=source), self._backend, directory)
        except BaseException:
            self._store.close_view(view)
            raise
        self._view, self._session = view, session
