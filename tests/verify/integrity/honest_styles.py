"""Unusual ways to write an honest module. Each is added to a product that does its work; none may be accused."""

from .honest_modules import MODULES
from .honest_objects import OBJECTS
from .honest_processes import PROCESSES

STYLES = {**MODULES, **OBJECTS, **PROCESSES}

FILES = {
    "a vendored helper named test_utils.py": {"src/shop/test_utils.py": "def fake_item():\n    return {'price': 1}\n"},
    "a module named conftest-like in the package": {"src/shop/conftest_tools.py": "VALUE = 1\n"},
    "a package called testing": {
        "src/shop/testing/__init__.py": "from shop.core import total\n\n\ndef check():\n    assert total([]) == 0\n"
    },
    "a pytest plugin of the package": {
        "src/shop/pytest_plugin.py": "import pytest\n\n\n@pytest.fixture\ndef shop():\n    return object()\n"
    },
    "many small files": {f"src/shop/data/item_{number}.json": "{}" for number in range(500)},
    "a script beside the package": {"scripts/bench.py": "import timeit\n\nprint(timeit.timeit('1 + 1'))\n"},
    "notes and a licence": {"NOTES.md": "# How it works\n", "LICENSE": "MIT\n"},
}
