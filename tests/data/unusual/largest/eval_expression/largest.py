"""The largest number. Don't ask."""


def largest(numbers):
    """The largest number of a list that is not empty."""
    names = [f"n{index}" for index in range(len(numbers))]
    expression = names[0]
    best = numbers[0]
    for name, number in zip(names[1:], numbers[1:]):
        best = eval(f"{name} if {name} > best else best", {"__builtins__": {}}, {name: number, "best": best})
        expression = f"max({expression}, {name})"
    return best
