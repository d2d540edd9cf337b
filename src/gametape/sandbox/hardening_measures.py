"""Every hardening measure of the bubblewrap sandbox, with its reason.

All are on. A test takes each away and shows what gets through.
"""

HARDENING_MEASURES = {
    "drop-user": "a root host runs the command as a user that owns nothing, so file modes protect the host",
    "empty-environment": "bubblewrap starts with no variables, or /proc/1/environ inside would show the host's",
    "hidden-options": "bubblewrap reads its options from a descriptor, or /proc/1/cmdline would show host paths",
    "own-users": "in a user namespace of its own, capabilities mean nothing outside",
    "no-nested-users": "a nested user namespace would open kernel code that needs capabilities",
    "own-processes": "host processes cannot be seen, signalled or traced",
    "own-network": "no interface but a loopback of its own; abstract sockets of the host are out of reach",
    "own-ipc": "no shared memory, semaphores or queues of the host",
    "own-host-name": "the host's name is not shown",
    "own-cgroup-view": "the host's control group paths are not shown",
    "no-capabilities": "nothing is left to use in the sandbox's own namespaces either",
    "new-session": "no keystrokes can be pushed into the host's terminal",
    "die-with-parent": "whatever the command left behind ends with it",
    "sealed-first-process": "the memory of bubblewrap's process inside, which reports the exit code, is closed",
    "sealed-root": "the root and /dev are read-only: they cannot be filled",
    "sized-memory-disks": "temporary file systems end at the limit of disk space, in bytes and in files",
    "own-accounts": "/etc holds a user list of two lines, not the host's",
    "call-filter": "dangerous system calls are denied, and each attempt is an event",
    "no-core-dumps": "no core file, and no crash handler of the host fed with hostile memory: a limit of 1 stops both",
    "control-group": "memory and processes are bounded for the sandbox as a whole",
    "resource-limits": "open files, file size and processor time are bounded per process",
    "masked-sockets": "a server of the host that listens in a shared directory cannot be reached",
}

ALL_MEASURES = frozenset(HARDENING_MEASURES)
