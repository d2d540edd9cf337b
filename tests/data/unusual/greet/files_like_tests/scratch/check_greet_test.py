import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from greet import greet  # noqa: E402

print(greet("Bob"))
