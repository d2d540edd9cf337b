"""Writing where the command has no business: the host's directories, the interpreter, gametape itself."""

from tests.sandbox.escape.probe import ROOT, Probe

FAMILY = "writes"


def _create(name: str, place: str) -> Probe:
    """Create a file there. The weaker run is pointed at the workspace, to show that the attempt is a real one."""
    body = f"""
    place = G["granted_file"] or {place}
    os.close(os.open(place + '/' + NONCE, os.O_WRONLY | os.O_CREAT, 0o600))
    """
    return Probe(name, FAMILY, body, planted={"granted_file": "/workspace"})


PROBES = [
    Probe("root-directory", FAMILY, "open('/' + NONCE, 'w')", escapes_without=frozenset({"sealed-root"})),
    Probe("new-top-directory", FAMILY, "os.mkdir('/' + NONCE)", escapes_without=frozenset({"sealed-root"})),
    _create("system", "'/usr'"),
    _create("programs", "'/usr/bin'"),
    _create("local-programs", "'/usr/local/bin'"),
    _create("libraries", "'/lib/x86_64-linux-gnu'"),
    Probe("configuration", FAMILY, "open('/etc/' + NONCE, 'w')", escapes_without=frozenset({"sealed-root"})),
    _create("alternatives", "'/etc/alternatives'"),
    Probe(
        "kernel-settings",
        FAMILY,
        "os.close(os.open('/proc/sys/kernel/hostname', os.O_WRONLY))",
        escapes_without=ROOT,
    ),
    _create("interpreter", 'G["base_prefix"] + "/lib"'),
    _create("environment", 'G["prefix"]'),
    _create("site-packages", 'G["site"]'),
    _create("own-sources", 'G["sources"]'),
    _create("outside", 'G["outside"]'),
    _create("workspace-parent", "'/workspace/..'"),
    _create("host-path-of-the-workspace", 'G["workspace_host"]'),
    Probe(
        "replace-a-program",
        FAMILY,
        """
        path = (G["granted_file"] or '/usr/bin') + '/' + ('own' if G["granted_file"] else 'env')
        os.close(os.open(path, os.O_WRONLY))
        """,
        planted={"granted_file": "/workspace"},
    ),
    Probe(
        "rename-a-system-directory",
        FAMILY,
        """
        place = G["granted_file"] or '/usr'
        os.rename(place + ('/own' if G["granted_file"] else '/local'), place + '/' + NONCE)
        """,
        planted={"granted_file": "/workspace"},
    ),
    Probe(
        "replace-the-account-list",
        FAMILY,
        "os.rename('/workspace/own', '/etc/passwd')",
        unshown="it is a file mounted by itself in every variant",
    ),
    Probe(
        "times-of-a-program",
        FAMILY,
        'os.utime(G["granted_file"] or "/usr/bin/env")',
        planted={"granted_file": "/workspace/own"},
    ),
    Probe(
        "attribute-on-a-program",
        FAMILY,
        'os.setxattr(G["granted_file"] or "/usr/bin/env", "user.x", b"x")',
        planted={"granted_file": "/workspace/own"},
    ),
    Probe(
        "write-through-a-private-map",
        FAMILY,
        """
        file = os.open(G["granted_file"] or '/usr/bin/env', os.O_RDONLY)
        shared = mmap.mmap(file, 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        """,
        unshown="a descriptor opened for reading can never be mapped for writing",
    ),
    Probe(
        "link-a-system-file-into-the-workspace",
        FAMILY,
        "os.link('/usr/bin/env', '/workspace/' + NONCE)",
        unshown="two mounts are never linked across",
    ),
]
