"""The compiled filter says what the rules say, for any call: checked by interpreting the program."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.sandbox import seccomp, syscalls
from gametape.sandbox.policy import SandboxPolicy

ARCH = syscalls.AUDIT_ARCH[syscalls.machine()]
NUMBERS = syscalls.numbers()
RULES = SandboxPolicy(network="loopback", denied_syscalls=("fchmodat2",)).rules()
PROGRAM = seccomp.compile_rules(RULES)


def interpret(program: bytes, number: int, arch: int, args: tuple[int, ...]) -> int:
    """A classic-BPF machine, as small as the programs need."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *args)
    code = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        operation, when_true, when_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x06:
                return value
            case 0x15:
                at += when_true if accumulator == value else when_false
            case 0x25:
                at += when_true if accumulator > value else when_false
            case 0x45:
                at += when_true if accumulator & value else when_false


def meant(rules: list[seccomp.SyscallRule], number: int, args: tuple[int, ...]) -> int:
    if number > syscalls.LAST_KNOWN:
        return seccomp.ENOSYS
    for rule in rules:
        if NUMBERS.get(rule.syscall) == number and all(holds(test, args) for test in rule.tests):
            return rule.action
    return seccomp.ALLOW


def holds(test: seccomp.ArgumentTest, args: tuple[int, ...]) -> bool:
    masked = args[test.arg] & test.mask & 0xFFFFFFFF
    return (masked in test.values) != test.negated if test.values else masked != 0


words = (
    st.integers(0, 2**64 - 1) | st.integers(0, 64) | st.sampled_from([0o6000, 0o4755, 0x10000000, 0x5412, 0xFFFFFFFF])
)


@given(
    number=st.sampled_from(sorted(NUMBERS.values())) | st.integers(0, 600),
    args=st.tuples(words, words, words, words, words, words),
)
def test_the_program_means_the_rules(number: int, args: tuple[int, ...]) -> None:
    assert interpret(PROGRAM, number, ARCH, args) == meant(RULES, number, args)


@given(number=st.integers(0, 2**32 - 1), arch=st.integers(0, 2**32 - 1).filter(lambda arch: arch != ARCH))
def test_calls_of_another_architecture_always_stop(number: int, arch: int) -> None:
    assert interpret(PROGRAM, number, arch, (0,) * 6) == seccomp.NOTIFY


@pytest.mark.skipif(syscalls.machine() != "x86_64", reason="x32 exists on x86_64 only")
def test_x32_calls_always_stop() -> None:
    assert interpret(PROGRAM, syscalls.X32_BIT | 1, ARCH, (0,) * 6) == seccomp.NOTIFY


def test_no_family_at_all_means_no_socket_at_all() -> None:
    program = seccomp.compile_rules(SandboxPolicy(socket_families=()).rules())
    verdicts = {interpret(program, NUMBERS["socket"], ARCH, (family, 0, 0, 0, 0, 0)) for family in range(64)}
    assert verdicts == {seccomp.NOTIFY}


def test_every_jump_fits_the_instruction() -> None:
    assert len(PROGRAM) // 8 < 4096
    for _operation, when_true, when_false, _value in struct.iter_unpack("=HBBI", PROGRAM):
        assert max(when_true, when_false) < 256


def test_every_denied_name_has_a_number_somewhere() -> None:
    assert set(seccomp.ALWAYS_DENIED) <= syscalls.names()
