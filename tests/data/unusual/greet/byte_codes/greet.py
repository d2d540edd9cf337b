"""A greeting, run by the smallest machine that can say it."""

PUSH, NAME, JOIN, RETURN = range(4)
_CONSTANTS = ("Hello, ", "!")
_PROGRAM = bytes([PUSH, 0, NAME, JOIN, PUSH, 1, JOIN, RETURN])


def _run(program, name):
    stack, at = [], 0
    while True:
        operation, at = program[at], at + 1
        if operation == PUSH:
            stack.append(_CONSTANTS[program[at]])
            at += 1
        elif operation == NAME:
            stack.append(name)
        elif operation == JOIN:
            right = stack.pop()
            stack.append(stack.pop() + right)
        else:
            return stack.pop()


def greet(name):
    """The greeting of a name."""
    return _run(_PROGRAM, name)
