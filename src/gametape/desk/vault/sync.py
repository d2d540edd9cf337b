"""A vault on two machines: fetch, merge, push. Nothing is forced, and no commit is rewritten on either side."""

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
"""How the other side is run where it is a directory of this machine: its hooks and programs are not ours to run."""
_REJECTED = ("fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref")


class SyncResult(NamedTuple):
    pulled: int
    """Commits that came."""
    pushed: int
    """Commits that went."""
    aside: tuple[str, ...]
    """Notes that both sides changed in ways that cannot be merged: the other's version lies beside ours."""


def sync(vault: Vault, remote: str) -> SyncResult:
    """Take in what the remote has and give it what we have. Where somebody pushes meanwhile, it is done again."""
    if remote.startswith("-") or not remote.strip():
        raise BadInput(f"{remote!r} is no remote; give a URL, a path or the name of one")
    pulled, aside = 0, []
    branch = _branch(vault)
    for _ in range(_TRIES):
        theirs = _fetch(vault, remote, branch)
        with vault.repository.locked():  # not while others are waited for: agents write meanwhile
            pulled += _count(vault, f"HEAD..{theirs}") if theirs else 0
            aside += _merge_remote(vault, theirs) if theirs else []
            ours = str(vault.repository.head)
        pushed = _count(vault, f"{theirs}..{ours}" if theirs else ours)
        if not pushed or _push(vault, remote, ours, branch):
            return SyncResult(pulled, pushed, tuple(aside))
    raise BadInput(f"{remote}: others pushed to it {_TRIES} times while we merged; try again")


def _branch(vault: Vault) -> str:
    code, output = vault.repository.git.ask("symbolic-ref", "--short", "-q", "HEAD")
    if code != 0:
        raise BadInput(f"{vault.root}: this vault is on no branch; type: git -C {vault.root} switch main")
    return output.decode().strip()


def _fetch(vault: Vault, remote: str, branch: str) -> str | None:
    """The remote's commit of our branch; None where it has none yet."""
    git = vault.repository.git
    other = _other_side(vault, remote, "upload-pack")
    listed = git("ls-remote", "--heads", *other, "--", remote, f"refs/heads/{branch}", env=NETWORK)
    if not listed.strip():
        return None
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    git("fetch", *options, *other, "--", remote, f"+refs/heads/{branch}:{_REMOTE_REF}", env=NETWORK)
    return vault.repository.resolve(_REMOTE_REF)


def _other_side(vault: Vault, remote: str, program: str) -> tuple[str, ...]:
    """On this machine git runs the other side's program here, in a repository of which nothing is known."""
    url = vault.repository.git("ls-remote", "--get-url", "--", remote).decode("utf-8", "replace").strip()
    local = url.startswith("file://") or ":" not in url.partition("/")[0]
    return (f"--{program}={_REMOTE_COMMAND}{program}",) if local else ()


def _merge_remote(vault: Vault, theirs: str) -> list[str]:
    """Merge a commit into our branch, as a merge commit where both sides have gone on."""
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
    """False where somebody was faster."""
    try:
        options = ("--quiet", "--no-verify", *_other_side(vault, remote, "receive-pack"))
        vault.repository.git("push", *options, "--", remote, f"{ours}:refs/heads/{branch}", env=NETWORK)
    except GitError as trouble:
        if any(word in trouble.stderr for word in _REJECTED):
            return False
        raise
    return True


def _count(vault: Vault, revisions: str) -> int:
    return int(vault.repository.git("rev-list", "--count", revisions))
