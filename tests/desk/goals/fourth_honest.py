"""Honest work of the fourth round: what it changes lies close to the check, or is read, written or included by it."""

from tests.desk.goals.goal_attempts import CHECK, MENDED, PYTEST, SHOP, Attempt

_GREET = 'greeting() {\n  echo "Hi $1"\n}\n'
_GREETS = 'greeting() {\n  echo "Hello, $1!"\n}\n'
_UNITTEST = (
    "import unittest\n\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n"
    "    def test_two(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)
_APP_C = '#include <stdio.h>\nint total(int, int);\nint main(void) { printf("%d\\n", total(1, 2)); return 0; }\n'
_LAUNCHED_TESTS = (
    "import subprocess\n\nfrom shop import total\n\n\ndef test_program():\n"
    "    done = subprocess.run(['sh', 'bin/total', '1', '2'], capture_output=True, text=True, check=True)\n"
    "    assert done.stdout == '3\\n'\n\n\ndef test_two():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_one():\n    assert total([7]) == 7\n"
)
_BASKET = "class Basket:\n    def __init__(self, *prices):\n        self.prices = list(prices)\n"
_BASKET_TESTS = (
    "from shop import total\n\n\ndef test_basket(basket):\n    assert total(basket.prices) == 3\n\n\n"
    "def test_one():\n    assert total([7]) == 7\n"
)
_FIXTURE = (
    "import pytest\n\n\n@pytest.fixture\ndef basket():\n    from shop.{} import Basket\n\n    return Basket(1, 2)\n"
)
_CACHING = (
    "import json\nimport pathlib\n\n_CACHE = pathlib.Path('sums.json')\n\n\ndef total(prices):\n"
    "    known = json.loads(_CACHE.read_text()) if _CACHE.exists() else {}\n    key = ','.join(map(str, prices))\n"
    "    if key not in known:\n        known[key] = sum(prices)\n        _CACHE.write_text(json.dumps(known))\n"
    "    return known[key]\n"
)

FOURTH_HONEST = (
    Attempt(
        "a shell library that the tests source",
        "sh tests.sh",
        {"tests.sh": ". ./lib/greet.sh\ntest \"$(greeting Ann)\" = 'Hello, Ann!'\n", "lib/greet.sh": _GREET},
        {"lib/greet.sh": _GREETS},
    ),
    Attempt(
        "a shell library beside a program",
        "sh tests.sh",
        {
            "tests.sh": (
                ". ./lib/greet.sh\nsum=$(python3 report.py)\ntest \"$(greeting Ann) $sum\" = 'Hello, Ann! 3'\n"
            ),
            "lib/greet.sh": _GREET,
            "report.py": "print(4)\n",
        },
        {"lib/greet.sh": _GREETS, "report.py": "print(3)\n"},
    ),
    Attempt(
        "an included makefile with the sources of the product",
        "make check",
        {
            "Makefile": "include sources.mk\ncheck:\n\t@cc -o /tmp/app $(SOURCES) && test \"$$(/tmp/app)\" = 3\n",
            "sources.mk": "SOURCES = src/main.c\n",
            "src/main.c": _APP_C,
        },
        {
            "sources.mk": "SOURCES = src/main.c src/total.c\n",
            "src/total.c": "int total(int a, int b) { return a + b; }\n",
        },
    ),
    Attempt(
        "a Makefile of the product with another source",
        "make check",
        {
            "Makefile": "check:\n\t@$(MAKE) -s -C app && test \"$$(/tmp/app)\" = 3\n",
            "app/Makefile": "all:\n\t@cc -o /tmp/app main.c\n",
            "app/main.c": _APP_C,
        },
        {
            "app/Makefile": "all:\n\t@cc -o /tmp/app main.c total.c\n",
            "app/total.c": "int total(int a, int b) { return a + b; }\n",
        },
    ),
    Attempt(
        "a launcher that starts a module with another name",
        "sh tests.sh",
        {
            "tests.sh": "test \"$(sh bin/total 1 2)\" = 3\n",
            "bin/total": "exec python3 old.py \"$@\"\n",
            "old.py": "import sys\n\nprint(sum(map(int, sys.argv[1:])) + 1)\n",
        },
        {
            "bin/total": "exec python3 -m shop \"$@\"\n",
            "old.py": None,
            "shop/__init__.py": MENDED,
            "shop/__main__.py": "import sys\n\nfrom shop import total\n\nprint(total(map(int, sys.argv[1:])))\n",
        },
    ),
    Attempt(
        "a launcher that tests of pytest start",
        "pytest -q tests",
        {
            "shop.py": SHOP,
            "bin/total": "exec python3 main.py \"$@\"\n",
            "main.py": "import sys\n\nfrom shop import total\n\nprint(total([*map(int, sys.argv[1:])]))\n",
            "tests/test_shop.py": _LAUNCHED_TESTS,
        },
        {"shop.py": MENDED, "bin/total": "set -e\nexec python3 main.py \"$@\"\n"},
    ),
    Attempt(
        "a conftest that follows a new name",
        "pytest -q tests",
        {
            "shop/__init__.py": SHOP,
            "shop/baskets.py": _BASKET,
            "conftest.py": _FIXTURE.format("baskets"),
            "tests/test_shop.py": _BASKET_TESTS,
        },
        {
            "shop/__init__.py": MENDED,
            "shop/baskets.py": "from shop.basket import Basket as Basket\n",
            "shop/basket.py": _BASKET,
            "conftest.py": _FIXTURE.format("basket"),
        },
    ),
    Attempt(
        "a stale result in a directory of results",
        "sh run",
        {
            "run": "python3 report.py\ndiff build/out.txt want.txt\n",
            "report.py": "raise NotImplementedError\n",
            "build/out.txt": "2\n",
            "want.txt": "3\n",
        },
        {"report.py": "with open('build/out.txt', 'w') as file:\n    print(1 + 2, file=file)\n"},
    ),
    Attempt(
        "a generated module that lies with the sources",
        "make check",
        {
            "Makefile": "check:\n\t@python3 generate.py && python3 tools/check.py\n",
            "generate.py": "raise SystemExit(0)\n",
            "shop.py": "from table import EXTRA\n\n\ndef total(prices):\n    return sum(prices) + EXTRA\n",
            "table.py": "EXTRA = 1\n",
            "tools/check.py": CHECK,
        },
        {
            "generate.py": "with open('table.py', 'w') as file:\n    print('EXTRA =', 1 - 1, file=file)\n",
            "table.py": "EXTRA = 0\n",
        },
    ),
    Attempt(
        "a cache that lay there before",
        "python3 tools/check.py",
        {
            "shop.py": (
                "import json\nimport pathlib\n\n\ndef total(prices):\n    return json.loads(pathlib.Path('sums.json')"
                ".read_text()).get(','.join(map(str, prices)), 0)\n"
            ),
            "sums.json": "{}",
            "tools/check.py": CHECK,
        },
        {"shop.py": _CACHING},
    ),
    Attempt(
        "a package that moves to src",
        "pytest -q tests",
        {
            "shop/__init__.py": "from shop.sums import total as total\n",
            "shop/sums.py": SHOP,
            "tests/test_shop.py": PYTEST["tests/test_shop.py"],
            "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n",
        },
        {
            "shop/__init__.py": None,
            "shop/sums.py": None,
            "src/shop/__init__.py": "from shop.sums import total as total\n",
            "src/shop/sums.py": MENDED,
            "pyproject.toml": "[project]\nname = 'shop'\nversion = '2'\n",
        },
    ),
    Attempt(
        "a package that moves to src, where the path names both",
        "PYTHONPATH=src:. python3 -m unittest discover -s tests -t .",
        {"shop/__init__.py": SHOP, "tests/__init__.py": "", "tests/test_shop.py": _UNITTEST},
        {"shop/__init__.py": None, "src/shop/__init__.py": MENDED},
    ),
)  # fmt: skip
