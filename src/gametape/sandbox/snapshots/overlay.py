"""Mounting a view with overlayfs. Standard library only: the keeper calls this.

Nothing in a layer may steer the mount elsewhere. Redirects, metadata-only files and the hard-link index are off, so
the only marks with a meaning are whiteouts and opaque directories; as an ordinary user those live in `user.overlay.*`
attributes (`userxattr`), which overlayfs keeps out of reach of whoever is inside.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from gametape.sandbox import linux

SAFE_OPTIONS = ("redirect_dir=nofollow", "metacopy=off", "index=off", "xino=off")

_libc = ctypes.CDLL(None, use_errno=True)
_PR_GET_SECUREBITS, _PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 27, 28, 1 << 2
_PAGE = 4096


@dataclass(frozen=True)
class MountPlan:
    """One view, ready to be mounted. Paths are relative to `root`, so that the store may be shown elsewhere."""

    root: str
    lower: Sequence[str]
    """Top first."""
    upper: str
    work: str
    options: Sequence[str]

    def data(self) -> str:
        """The options of the mount, as the kernel wants them: in one string, shorter than a page."""
        directories = (f"lowerdir={':'.join(self.lower)}", f"upperdir={self.upper}", f"workdir={self.work}")
        text = ",".join((*directories, *self.options))
        if len(text) >= _PAGE:
            raise ValueError(f"{len(self.lower)} layers are more than one mount can name")
        return text


def mount(plan: MountPlan, target: str, root: str | None = None, owner: int | None = None) -> None:
    """Show the view at `target`, in this process's mount namespace, which should be a private one.

    `root` is where the store is shown if not at its own place. `owner` is the user to whom an ID-mapped mount at `root`
    gives the files: overlayfs works with the identity of whoever mounts, and root is nobody there. One view must not be
    mounted twice at the same time; one after the other is fine.
    """
    target = os.path.abspath(target)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    with _working_directory(root or plan.root), _file_identity(owner):
        _forget_last_mount(plan.work)
        linux.mount("overlay", target, "overlay", flags, plan.data())
    if os.statvfs(target).f_flag & os.ST_RDONLY:
        unmount(target)
        raise OSError(f"the view can only be read: {plan.work} in {root or plan.root} cannot be written by its mounter")


def unmount(target: str) -> None:
    """Take a mount away at once; what still uses it keeps it until done."""
    detach = 2
    if _libc.umount2(os.fsencode(target), detach) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"umount {target}: {os.strerror(number)}")


def enter_private_namespace(inside: int | None = None) -> None:
    """Give this process, which must have one thread, mounts of its own; as an ordinary user, a user namespace too.

    In that namespace the process has every capability over its own files. It appears there as user `inside`, or as
    itself.
    """
    if os.geteuid() == 0:
        linux.unshare(linux.CLONE_NEWNS)
    else:
        uid, gid = (os.geteuid(), os.getegid()) if inside is None else (inside, inside)
        linux.enter_user_namespace(uid, gid, linux.CLONE_NEWNS)
    linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)


@contextmanager
def _working_directory(path: str) -> Iterator[None]:
    """Change the working directory for a block; afterwards go back, or to `/` if the old one cannot be opened."""
    try:
        before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        before = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(path)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def _file_identity(user: int | None) -> Iterator[None]:
    """Touch files as `user` and with root's capabilities, which the kernel would otherwise take away."""
    if user is None:
        yield
        return
    before = _libc.prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0)
    if _libc.prctl(_PR_SET_SECUREBITS, before | _NO_SETUID_FIXUP, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl(SET_SECUREBITS): only root can mount for another user")
    try:
        _libc.setfsgid(user)
        _libc.setfsuid(user)
        yield
    finally:
        _libc.setfsuid(os.geteuid())
        _libc.setfsgid(os.getegid())
        _libc.prctl(_PR_SET_SECUREBITS, before, 0, 0, 0)


def _forget_last_mount(work: str) -> None:
    """A volatile mount leaves a mark that forbids the next one in case the machine crashed, which it did not."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(f"{work}/work/incompat/volatile/dirty")
    with suppress(FileNotFoundError, NotADirectoryError):
        os.rmdir(f"{work}/work/incompat/volatile")
