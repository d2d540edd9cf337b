"""Doubling, the way the lecture notes do it."""

# Y = λf.(λx.f (x x)) (λx.f (x x)), in the strict form
_fix = lambda f: (lambda x: x(x))(lambda x: f(lambda *a: x(x)(*a)))

_times = _fix(lambda again: lambda n, number, zero: zero if n == 0 else number + again(n - 1, number, zero))

double = lambda number: number + _times(1, number, number - number)
