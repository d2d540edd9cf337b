"""Reading what is the host's: secrets, homes, keys, and ways round through /proc and the workspace's parents."""

from tests.sandbox.escape.probe import ROOT, Probe

FAMILY = "files"


def _place(name: str, path: str, logged: bool) -> Probe:
    body = f'open(G["granted_file"] or {path!r}, "rb").read(1)'
    return Probe(
        name,
        FAMILY,
        body,
        logged="openat" if logged else None,
        granted={"read_only": ("{outside}",)},
        planted={"granted_file": "{outside}/open"},
    )


_PLACES = [
    _place("shadow", "/etc/shadow", logged=True),
    _place("shadow-backup", "/etc/shadow-", logged=False),
    _place("shadow-by-dots", "/usr/../etc/./shadow", logged=True),
    _place("gshadow", "/etc/gshadow", logged=True),
    _place("sudoers", "/etc/sudoers", logged=True),
    _place("ssh-host-key", "/etc/ssh/ssh_host_ed25519_key", logged=True),
    _place("root-ssh-key", "/root/.ssh/id_ed25519", logged=True),
    _place("root-shell-history", "/root/.bash_history", logged=True),
    _place("home-ssh-key", "/home/user/.ssh/id_rsa", logged=True),
    _place("machine-id", "/etc/machine-id", logged=False),
    _place("journal", "/var/log/syslog", logged=False),
    _place("host-run", "/run/utmp", logged=False),
    _place("boot", "/boot/System.map", logged=False),
]

_WALK = """
found = []
for pid in ([str(G["victim"])] if os.path.exists(f'/proc/{G["victim"]}') else filter(str.isdigit, os.listdir('/proc'))):
    found += look(pid)
need(found, 'nothing of the host is behind /proc')
"""


def _walk(name: str, look: str, unshown: str = "", **more: object) -> Probe:
    return Probe(name, FAMILY, look + _WALK, unshown=unshown, **more)  # type: ignore[arg-type]


_THROUGH_PROC = [
    _walk(
        "proc-root-links",
        """
def look(pid):
    try: return [open(f'/proc/{pid}/root' + G["secret_file"]).read()]
    except OSError: return []
""",
        escapes_without=ROOT | {"own-processes"},
    ),
    _walk(
        "proc-cwd-links",
        """
def look(pid):
    try: return [open(f'/proc/{pid}/cwd/../outside/open').read(), open(f'/proc/{pid}/cwd' + G["secret_file"]).read()]
    except OSError: return []
""",
        unshown="the victim's directory is wherever the tests run",
    ),
    _walk(
        "proc-descriptors",
        """
def look(pid):
    found = []
    try: names = os.listdir(f'/proc/{pid}/fd')
    except OSError: return []
    for name in names:
        try: found += [1] * (os.readlink(f'/proc/{pid}/fd/{name}') == G["secret_file"])
        except OSError: pass
    return found
""",
        escapes_without=ROOT | {"own-processes"},
    ),
    _walk(
        "proc-map-files",
        """
def look(pid):
    try: links = [os.readlink(f'/proc/{pid}/map_files/{name}') for name in os.listdir(f'/proc/{pid}/map_files')]
    except OSError: return []
    return [link for link in links if G["outside"] in link]
""",
        unshown="the victim maps nothing secret",
    ),
]

_PROBES = [
    Probe(
        "planted-secret",
        FAMILY,
        'open(G["secret_file"]).read()',
        escapes_without=ROOT,
        granted={"read_only": ("{outside}",)},
    ),
    Probe(
        "planted-readable",
        FAMILY,
        'open(G["outside"] + "/open").read()',
        granted={"read_only": ("{outside}",)},
    ),
    Probe(
        "workspace-on-host-path",
        FAMILY,
        'os.listdir(G["workspace_host"])',
        planted={"workspace_host": "/workspace"},
    ),
    Probe(
        "workspace-parent",
        FAMILY,
        'open("/workspace/../outside/open").read()',
        unshown="the parent of the mount is the sandbox's own root whatever is taken away",
    ),
    Probe(
        "workspace-parent-by-descriptor",
        FAMILY,
        """
        here = os.open('/workspace', os.O_RDONLY)
        for _ in range(40):
            here = os.open('..', os.O_RDONLY, dir_fd=here)
        need('usr' in os.listdir(here) and os.path.basename(G["outside"]) in os.listdir(here), 'the top is the sandbox')
        """,
        unshown="the parent of the mount is the sandbox's own root whatever is taken away",
    ),
    Probe(
        "symlink-to-the-secret",
        FAMILY,
        """
        os.symlink(G["secret_file"], '/workspace/link')
        open('/workspace/link').read()
        """,
        escapes_without=ROOT,
        granted={"read_only": ("{outside}",)},
    ),
    Probe(
        "magic-link-of-self",
        FAMILY,
        'open(f"/proc/self/root/proc/1/root" + G["secret_file"]).read()',
        escapes_without=ROOT,
        granted={"read_only": ("{outside}",)},
    ),
    Probe(
        "system-directory-listing",
        FAMILY,
        'need(set(os.listdir(G["listed"] or "/etc")) & {"shadow", "crontab", "fstab", "secret"}, "only its own")',
        granted={"read_only": ("{outside}",)},
        planted={"listed": "{outside}"},
    ),
    Probe(
        "other-homes",
        FAMILY,
        'need([n for n in os.listdir(G["listed"] or "/home")], "no homes")',
        granted={"read_only": ("{outside}",)},
        planted={"listed": "{outside}"},
        logged="openat",
    ),
    Probe(
        "host-user-list",
        FAMILY,
        'need(len(open("/etc/passwd").readlines()) > 2, "a list of two")',
        escapes_without=frozenset({"own-accounts"}),
    ),
    Probe(
        "host-name",
        FAMILY,
        'need(os.uname().nodename == G["host_name"], "another name")',
        escapes_without=frozenset({"own-host-name"}),
    ),
    Probe(
        "sysfs",
        FAMILY,
        "need(os.listdir('/sys'), 'empty')",
        bare=True,
    ),
    Probe(
        "control-group-files",
        FAMILY,
        "need(os.listdir('/sys/fs/cgroup'), 'empty')",
        bare=True,
    ),
]

PROBES = [*_PLACES, *_THROUGH_PROC, *_PROBES]
