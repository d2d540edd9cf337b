"""A store and its views, in processes of their own, as whoever starts this. Commands and answers are lines of JSON.

Two processes: one keeps the store, with no more rights than its user has; the other holds the mounts and changes files
in them and, in the same way, in plain directories: the models. Standard library only.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from gametape.core.errors import GametapeError
from gametape.sandbox.snapshots import overlay
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.sandbox.snapshots.store_layout import SnapshotView
from tests.sandbox.snapshots.trees import apply, describe

BEGINNING = [
    *(["mkdir", path] for path in ("a", "a/b", "b", "a/b/c")),
    *(["write", path, path] for path in ("a/a", "a/b/a", "a/b/c/b", "b/b")),
    *(["link", "a/b/a", "b/c"], ["link", "a/b/a", "a/b/b"], ["symlink", "b/a", "../a/a"], ["utime", "a/b", 10**18]),
]


class Inside:
    """The process that lives in the views."""

    def __init__(self, mounts: bool) -> None:
        if mounts:
            overlay.enter_private_namespace(inside=0)

    def mount(self, plan: dict[str, Any], target: str) -> None:
        os.makedirs(target, exist_ok=True)
        overlay.mount(overlay.MountPlan(**plan), target)

    def unmount(self, target: str) -> None:
        overlay.unmount(target)

    def change(self, view: str, model: str, change: list[Any]) -> list[str]:
        """Change both in the same way; what differs afterwards."""
        got = apply(view, change)
        if got == "EXDEV" and change[0] == "rename":  # a directory from a layer below
            change = ["move by copy", *change[1:]]
            got = apply(view, change)
        wanted = apply(model, change)
        if got != wanted:
            return [f"{change}: {got or 'went well'}, and {wanted or 'went well'} in a plain directory"]
        return self.compare(view, model)

    def compare(self, view: str, model: str) -> list[str]:
        got, wanted = describe(view), describe(model)
        if got["\0links"] != wanted["\0links"] and all(acts_as_one(view, group) for group in wanted["\0links"]):
            # A live overlay may number two names of one file differently; what is done to one must show in the other.
            groups = [set(group) for group in wanted["\0links"]]
            got["\0links"] = wanted["\0links"] + [g for g in got["\0links"] if not any(set(g) <= w for w in groups)]
        return differences(got, wanted)

    def run(self, directory: str, code: str) -> Any:
        """Anything else."""
        os.chdir(directory)
        names: dict[str, Any] = {}
        exec(code, names)
        return names.get("answer")


class Outside:
    """The process that keeps the store."""

    def __init__(self, root: Path, mode: str, ask: Callable[..., Any], max_bytes: int | None) -> None:
        self.root, self.ask = root, ask
        self.store = SnapshotStore(root / "store", max_bytes=max_bytes, mode=mode)  # type: ignore[arg-type]
        self.views: list[SnapshotView] = []
        self.shown: dict[str, str] = {}

    def import_tree(self, path: str) -> str:
        return self.store.import_tree(Path(path))

    def open(self, snapshot: str) -> int:
        view = self.store.open_view(snapshot)
        self.views.append(view)
        if view.mount:
            self.shown[view.id] = str(self.root / "shown" / view.id)
            plan = {name: getattr(view.mount, name) for name in ("root", "lower", "upper", "work", "options")}
            self.ask("mount", plan, self.shown[view.id])
        else:
            self.shown[view.id] = str(view.tree)
        return len(self.views) - 1

    def where(self, view: int) -> str:
        return self.shown[self.views[view].id]

    def seal(self, view: int, durably: bool = False) -> str:
        return self.store.seal(self.views[view], durably)

    def close(self, view: int) -> None:
        if self.views[view].mount:
            self.ask("unmount", self.where(view))
        self.store.close_view(self.views[view])

    def export(self, snapshot: str) -> str:
        place = self.root / f"export-{snapshot}"
        self.store.export(snapshot, place)
        return str(place)

    def inside(self, view: int, code: str) -> Any:
        return self.ask("run", self.where(view), code)

    def evaluate(self, code: str) -> Any:
        """Anything else, with the store and the views at hand."""
        names = {"store": self.store, "views": self.views, "root": self.root}
        exec(code, names)
        return names.get("answer")

    def play(self, steps: list[list[Any]]) -> list[str]:
        """Change, seal, fork and restore as told, with a plain directory beside each view. Says what went wrong."""
        game = self.root / "game"
        shutil.rmtree(game, ignore_errors=True)
        model = str(game / "model-0")
        os.makedirs(model)
        for change in BEGINNING:
            apply(model, change)
        saved = [(self.import_tree(model), _copy(model, str(game / "saved-0")))]
        live = [(self.open(saved[0][0]), model)]
        wrong: list[str] = []
        for number, (kind, *arguments) in enumerate(steps, start=1):
            view, model = live[-1]
            if kind == "seal":
                saved.append((self.seal(view), _copy(model, str(game / f"saved-{number}"))))
            elif kind in ("fork", "restore"):
                if kind == "restore":
                    live.pop()
                    self.close(view)
                snapshot, state = saved[arguments[0] % len(saved)]
                live.append((self.open(snapshot), _copy(state, str(game / f"model-{number}"))))
            elif kind == "switch":
                live.insert(0, live.pop())
            else:
                wrong = self.ask("change", self.where(view), model, [kind, *arguments])
            wrong = wrong or self.ask("compare", self.where(live[-1][0]), live[-1][1])
            if wrong:
                break
        for snapshot, state in saved:
            exported = self.export(snapshot)
            wrong += [f"export: {line}" for line in differences(describe(exported), describe(state))]
            shutil.rmtree(exported)
        for view, _model in live:
            self.close(view)
        for snapshot, _state in saved:
            self.store.remove(snapshot)
        return wrong


def acts_as_one(root: str, names: list[str]) -> bool:
    """Whether names are one file, by changing its time through the first and looking through the others."""
    first, *others = (os.path.join(root, name) for name in names)
    before = os.lstat(first)
    os.utime(first, ns=(before.st_atime_ns, 1234567890123456789), follow_symlinks=False)
    same = all(os.lstat(other).st_mtime_ns == 1234567890123456789 for other in others)
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns), follow_symlinks=False)
    return same


def differences(got: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    names = sorted(set(got) | set(wanted))
    return [f"{name}: {got.get(name)} not {wanted.get(name)}" for name in names if got.get(name) != wanted.get(name)]


def _copy(source: str, target: str) -> str:
    subprocess.run(["cp", "-a", source, target], check=True)
    return target


def serve(handler: Any, lines: TextIO, answers: TextIO) -> None:
    for line in lines:
        name, *arguments = json.loads(line)
        try:
            answer = {"answer": getattr(handler, name)(*arguments)}
        except GametapeError as error:
            answer = {"trouble": type(error).__name__, "text": str(error)}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    root, mode, *rest = sys.argv[1:]
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        serve(Inside(mode == "overlay"), theirs.makefile("r"), theirs.makefile("w"))
        os._exit(0)
    theirs.close()
    lines, answers = ours.makefile("r"), ours.makefile("w")

    def ask(*words: Any) -> Any:
        answers.write(json.dumps(words) + "\n")
        answers.flush()
        answer = json.loads(lines.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]

    serve(Outside(Path(root), mode, ask, int(rest[0]) if rest else None), sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
