"""Large or old parts of the kernel that a sandboxed program has no need of, and calls on the machine itself.

Every argument is chosen so that nothing happens where the isolation fails: the kernel's own complaint is proof enough.
"""

from tests.sandbox.escape.probe import ROOT, Probe

FILTER = frozenset({"call-filter"})


def _surface(name: str, body: str, logged: str, without: frozenset[str] = FILTER, unshown: str = "") -> Probe:
    without = frozenset() if unshown else without
    return Probe(name, "surfaces", body, logged=logged, escapes_without=without, unshown=unshown)


def _machine(name: str, body: str, logged: str, unshown: str = "") -> Probe:
    without = frozenset() if unshown else ROOT
    return Probe(name, "machine", body, logged=logged, escapes_without=without, unshown=unshown)


_SURFACES = [
    _surface("add-key", 'call("add_key", "user", NONCE, b"x", 1, -2)', "add_key"),
    _surface("request-key", 'reach("request_key", "user", NONCE, 0, 0)', "request_key"),
    _surface("keyctl-session", 'call("keyctl", 1, 0)', "keyctl"),
    _surface("keyctl-search", 'reach("keyctl", 10, -3, "user", NONCE, 0)', "keyctl"),
    _surface("io-uring-setup", 'reach("io_uring_setup", 1, bytes(120))', "io_uring_setup"),
    _surface("io-uring-enter", 'reach("io_uring_enter", 99, 1, 0, 0, 0, 0)', "io_uring_enter"),
    _surface("io-uring-register", 'reach("io_uring_register", 99, 0, 0, 0)', "io_uring_register"),
    _surface("bpf-map", 'reach("bpf", 0, struct.pack("=4I", 2, 4, 4, 1) + bytes(112), 128)', "bpf", ROOT),
    _surface("bpf-program", 'reach("bpf", 5, bytes(128), 128)', "bpf", ROOT),
    _surface("userfaultfd", 'reach("userfaultfd", 1)', "userfaultfd"),
    _surface("perf-event", 'reach("perf_event_open", 0, 0, -1, -1, 0)', "perf_event_open"),
    _surface("fanotify", 'reach("fanotify_init", 0x200, 0)', "fanotify_init"),
    _surface("fanotify-mark", 'reach("fanotify_mark", 99, 1, 2, -100, "/")', "fanotify_mark"),
    _surface(
        "open-by-handle",
        'reach("open_by_handle_at", 99, struct.pack("=Ii", 8, 1) + bytes(8), 0)',
        "open_by_handle_at",
    ),
    _surface(
        "name-to-handle",
        'reach("name_to_handle_at", -100, "/usr/" + NONCE, bytes(136), bytes(8), 0)',
        "name_to_handle_at",
    ),
    _surface("lookup-dcookie", 'reach("lookup_dcookie", 0, 0, 0)', "lookup_dcookie", unshown="gone from new kernels"),
    _surface("seccomp-listener", 'reach("seccomp", 1, 8, 0)', "seccomp"),
    _surface("personality-no-randomness", 'call("personality", 0x0040000)', "personality"),
    _surface("personality-read-implies-exec", 'call("personality", 0x0400000)', "personality"),
    _surface("segment-table", 'reach("modify_ldt", 1, bytes(16), 16)', "modify_ldt"),
    _surface("old-library-call", 'reach("uselib", NONCE)', "uselib", unshown="gone from new kernels"),
    Probe(
        "landlock-ruleset",
        "surfaces",
        'reach("landlock_create_ruleset", struct.pack("=Q", 1), 8, 0)',
        escapes_without=FILTER,
    ),
    _surface(
        "unknown-call",
        """
        try: call(1023)
        except OSError as error: raise Blocked('not supported') if error.errno == errno.ENOSYS else error
        """,
        "",
        unshown="no kernel has it",
    ),
]

_MACHINE = [
    _machine("reboot", 'reach("reboot", 0, 0, 0, 0)', "reboot"),
    _machine("kexec-load", 'reach("kexec_load", 0, 0, 0, 0xFFFF)', "kexec_load", "not in every kernel"),
    _machine("kexec-file", 'reach("kexec_file_load", -1, -1, 0, 0, 0xFFFF)', "kexec_file_load", "not in every kernel"),
    _machine("swap-on", 'reach("swapon", "/tmp/" + NONCE, 0)', "swapon"),
    _machine("swap-off", 'reach("swapoff", "/tmp/" + NONCE)', "swapoff"),
    _machine("host-name", 'call("sethostname", NONCE, len(NONCE))', "sethostname"),
    _machine("domain-name", 'call("setdomainname", NONCE, len(NONCE))', "setdomainname"),
    _machine("set-time-of-day", 'reach("settimeofday", 0, 0)', "settimeofday"),
    _machine("set-clock", 'reach("clock_settime", 0, struct.pack("=qq", -1, -1))', "clock_settime"),
    _machine("adjust-clock", 'reach("adjtimex", struct.pack("=I", 1 << 31) + bytes(204))', "adjtimex"),
    _machine("adjust-a-clock", 'reach("clock_adjtime", 0, bytes(208))', "clock_adjtime"),
    _machine("load-module", 'reach("init_module", 0, 0, NONCE)', "init_module", "not in every kernel"),
    _machine("load-module-file", 'reach("finit_module", -1, NONCE, 0)', "finit_module", "not in every kernel"),
    _machine("remove-module", 'reach("delete_module", NONCE, 2048)', "delete_module", "not in every kernel"),
    _machine("kernel-log", 'reach("syslog", 10, 0, 0)', "syslog"),
    _machine("accounting", 'reach("acct", "/tmp/" + NONCE)', "acct", "not in every kernel"),
    _machine("quota", 'reach("quotactl", 0x80000701, "/tmp/" + NONCE, 0, 0)', "quotactl"),
    _machine("quota-by-descriptor", 'reach("quotactl_fd", 99, 0x80000701, 0, 0)', "quotactl_fd"),
    _machine("ports", 'call("iopl", 3)', "iopl", "not in every kernel"),
    _machine("one-port", 'reach("ioperm", 0x80, 1, 1)', "ioperm", "not in every kernel"),
    _machine("hang-up", 'call("vhangup")', "vhangup", "on a host with a terminal it would be felt"),
    _machine("nfs-server", 'reach("nfsservctl", 0, 0, 0)', "nfsservctl", "gone from new kernels"),
]

_CODE = """
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex(MACHINE))
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
result = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
need(result not in (-1, -38), f'refused with {result}')
"""


def _foreign(name: str, machine_code: str, logged: str, without: frozenset[str], unshown: str = "") -> Probe:
    body = _CODE.replace("MACHINE", repr(machine_code))
    return Probe(name, "foreign-calls", body, logged=logged, escapes_without=without, unshown=unshown)


# mov eax, number; int 0x80; ret  (rbx is the caller's, so it is saved where an argument goes there)
_FOREIGN = [
    _foreign("32-bit-getpid", "b814000000cd80c3", "i386:20", FILTER),
    _foreign("32-bit-getuid", "b818000000cd80c3", "i386:24", FILTER),
    _foreign("32-bit-socket", "53bb1000000031c931d2b967000000b866010000b903000000cd805bc3", "i386:358", FILTER),
    _foreign("32-bit-unshare", "5331dbb836010000cd805bc3", "i386:310", FILTER),
    _foreign("32-bit-mount", "5331db31c931d2b815000000cd805bc3", "i386:21", FILTER),
    # mov eax, 0x40000000 + number; syscall; ret
    _foreign("x32-getpid", "b8270000400f05c3", "x32:39", frozenset(), "the kernel may be built without x32"),
    _foreign("x32-ptrace", "b8090200400f05c3", "x32:521", frozenset(), "the kernel may be built without x32"),
]

PROBES = [*_SURFACES, *_MACHINE, *_FOREIGN]
