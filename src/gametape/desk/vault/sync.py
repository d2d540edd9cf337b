"""Synchronises a vault with a git remote: fetch, merge, push. Nothing is forced, no commit is rewritten."""

from typing import NamedTuple

from gametape.core.errors import BadInput
from gametape.desk.host_git import GitError
from gametape.desk.vault.git import NETWORK
from gametape.desk.vault.merge import merge_files
from gametape.desk.vault.vault import Vault

_REMOTE_REF = "refs/gametape/theirs"
_TRIES = 5
_REMOTE_COMMAND = (
    "GIT_ALLOW_PROTOCOL=none git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true "
    "-c receive.autogc=false -c receive.denyCurrentBranch=refuse "
)
"""How git runs the remote side where the remote is a directory on this machine: without its hooks and programs."""
_REJECTED = ("fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref")


class SyncResult(NamedTuple):
    pulled: int
    """Commits that were fetched."""
    pushed: int
    """Commits that were pushed."""
    aside: tuple[str, ...]
    """Notes with conflicts: the other version is stored beside ours."""


def sync(vault: Vault, remote: str) -> SyncResult:
    """Merge what the remote has and push what we have. If somebody else pushes meanwhile, start again."""
    if remote.startswith("-") or not remote.strip():
        raise BadInput(f"{remote!r} is not a remote; give a URL, a path or the name of one")
    pulled, aside = 0, []
    branch = _branch(vault)
    for _ in range(_TRIES):
        theirs = _fetch(vault, remote, branch)
        with vault.repository.locked():  # not held during the fetch and the push: agents write meanwhile
            pulled += _count(vault, f"HEAD..{theirs}") if theirs else 0
            aside += _merge_remote(vault, theirs) if theirs else []
            ours = str(vault.repository.head)
        pushed = _count(vault, f"{theirs}..{ours}" if theirs else ours)
        if not pushed or _push(vault, remote, ours, branch):
            return SyncResult(pulled, pushed, tuple(aside))
    raise BadInput(f"{remote}: others pushed {_TRIES} times during the merge; try again")


def _branch(vault: Vault) -> str:
    code, output = vault.repository.git.ask("symbolic-ref", "--short", "-q", "HEAD")
    if code != 0:
        raise BadInput(f"{vault.root}: this vault is on no branch; type: git -C {vault.root} switch main")
    return output.decode().strip()


def _fetch(vault: Vault, remote: str, branch: str) -> str | None:
    """Fetch the remote's commit of our branch; None where it has none yet."""
    git = vault.repository.git
    other = _other_side(vault, remote, "upload-pack")
    listed = git("ls-remote", "--heads", *other, "--", remote, f"refs/heads/{branch}", env=NETWORK)
    if not listed.strip():
        return None
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    git("fetch", *options, *other, "--", remote, f"+refs/heads/{branch}:{_REMOTE_REF}", env=NETWORK)
    return vault.repository.resolve(_REMOTE_REF)


def _other_side(vault: Vault, remote: str, program: str) -> tuple[str, ...]:
    """An option that hardens the remote program where git runs it on this machine, in an unknown repository."""
    url = vault.repository.git("ls-remote", "--get-url", "--", remote).decode("utf-8", "replace").strip()
    local = url.startswith("file://") or ":" not in url.partition("/")[0]
    return (f"--{program}={_REMOTE_COMMAND}{program}",) if local else ()


def _merge_remote(vault: Vault, theirs: str) -> list[str]:
    """Merge a commit into our branch, with a merge commit where both sides have new commits. Returns the conflicts."""
    repository = vault.repository
    head = repository.head
    if head is None or repository.is_ancestor(theirs, head):
        return []
    if repository.is_ancestor(head, theirs):
        repository.advance(theirs)
        return []
    code, output = repository.git.ask("merge-base", head, theirs)
    base = repository.files(output.decode().split()[0] if code == 0 else None)
    changes, conflicts = merge_files(
        repository, base, repository.files(head), repository.files(theirs), aside="elsewhere"
    )
    repository.commit(changes, "Take in what another machine has written\n", parents=[theirs])
    return [path.removesuffix(".md") for path in conflicts]


def _push(vault: Vault, remote: str, ours: str, branch: str) -> bool:
    """Push; False where somebody else pushed first."""
    try:
        options = ("--quiet", "--no-verify", *_other_side(vault, remote, "receive-pack"))
        vault.repository.git("push", *options, "--", remote, f"{ours}:refs/heads/{branch}", env=NETWORK)
    except GitError as error:
        if any(word in error.stderr for word in _REJECTED):
            return False
        raise
    return True


def _count(vault: Vault, revisions: str) -> int:
    return int(vault.repository.git("rev-list", "--count", revisions))
