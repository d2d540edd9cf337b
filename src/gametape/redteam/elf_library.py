"""A hand-made shared library that ends the process with exit code 0 when it is loaded."""

import platform
import struct

from gametape.redteam.hack_target import HackNotApplicable

MACHINE_CODE = {
    "x86_64": (62, bytes.fromhex("31ffb8e70000000f05")),  # xor edi, edi; mov eax, exit_group; syscall
    "aarch64": (183, bytes.fromhex("000080d2c80b80d2010000d4")),  # mov x0, 0; mov x8, exit_group; svc 0
}

INIT, STRING_TABLE, SYMBOL_TABLE, STRING_SIZE, SYMBOL_SIZE = 12, 5, 6, 10, 11


def library_that_exits() -> bytes:
    """An ELF file with one loadable segment and a dynamic section that names its initialiser."""
    if platform.machine() not in MACHINE_CODE:
        raise HackNotApplicable(f"no machine code for {platform.machine()}")
    machine, code = MACHINE_CODE[platform.machine()]
    headers = 64 + 2 * 56
    symbols = headers + 6 * 16
    strings = symbols + 24
    start = strings + 8
    size = start + len(code)
    entries = [
        (INIT, start),
        (STRING_TABLE, strings),
        (SYMBOL_TABLE, symbols),
        (STRING_SIZE, 1),
        (SYMBOL_SIZE, 24),
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = identity + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, size, size, 0x1000)
    described = struct.pack("<IIQQQQQQ", 2, 6, headers, headers, headers, len(dynamic), len(dynamic), 8)
    return header + load + described + dynamic + bytes(24) + bytes(8) + code
