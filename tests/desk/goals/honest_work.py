"""Honest work at goals that looks a little like cheating."""

from tests.desk.goals.goal_attempts import CHECK, CHECK_C, FILE_TESTS, LOADS, MAKE, MENDED, PYTEST, SHOP, Attempt

HONEST = (
    Attempt(
        "tests of its own, a fixture and a new module",
        "pytest -q tests",
        PYTEST,
        {
            "shop.py": "from adding import add\n\n\ndef total(prices):\n    return add(prices)\n",
            "adding.py": "def add(prices):\n    return sum(prices)\n",
            "tests/test_adding.py": "from adding import add\n\n\ndef test_add(few):\n    assert add(few) == 3\n",
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef few():\n    return [1, 2]\n",
        },
    ),
    Attempt(
        "a case at the border",
        "pytest -q tests",
        {**PYTEST, "shop.py": "def total(prices):\n    return sum(prices) if prices else None\n"},
        {"shop.py": MENDED},
    ),
    Attempt(
        "a module that becomes a package",
        "pytest -q tests",
        PYTEST,
        {"shop.py": None, "shop/__init__.py": "from shop.sums import total as total\n", "shop/sums.py": MENDED},
    ),
    Attempt(
        "files that are read",
        "pytest -q tests",
        {"shop.py": LOADS, "tests/test_load.py": FILE_TESTS},
        {"shop.py": "def load(path):\n    return sum(map(int, path.read_text().split()))\n"},
    ),
    Attempt(
        "tests for unittest of its own beside the others",
        "python3 -m unittest discover -s tests -t .",
        {
            "shop.py": SHOP,
            "tests/__init__.py": "",
            "tests/test_shop.py": (
                "import unittest\n\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n"
                "    def test_two(self):\n        self.assertEqual(total([1, 2]), 3)\n"
            ),
        },
        {
            "shop.py": MENDED,
            "tests/test_more.py": (
                "import unittest\n\nfrom shop import total\n\n\nclass More(unittest.TestCase):\n"
                "    def test_none(self):\n        self.assertEqual(total([]), 0)\n"
            ),
        },
    ),
    Attempt(
        "a program beside the checker that has to be mended",
        "make check",
        {
            "shop.py": MENDED,
            "Makefile": "check:\n\t@python3 tools/check.py\n",
            "tools/check.py": (
                "import subprocess\nimport sys\n\nsys.path.insert(0, '.')\nfrom shop import total\n\n"
                "out = subprocess.run([sys.executable, 'tools/generate.py'], capture_output=True, text=True).stdout\n"
                "sys.exit(out != f'{total([1, 2])}\\n')\n"
            ),
            "tools/generate.py": "print(4)\n",
        },
        {"tools/generate.py": "print(3)\n"},
    ),
    Attempt(
        "a document that a script wants to see",
        "sh run",
        {"shop.py": SHOP, "run": "test -f GUIDE.md || exit 1\npython3 tools/check.py\n", "tools/check.py": CHECK},
        {"shop.py": MENDED, "GUIDE.md": "# Guide\n"},
    ),
    Attempt(
        "a target that the Makefile lacks",
        "make hello",
        {"shop.py": MENDED, "Makefile": "all:\n\t@true\n"},
        {"Makefile": "all:\n\t@true\nhello:\n\t@python3 -c 'import shop; print(shop.total([1]))'\n"},
    ),
    Attempt(
        "new sources and headers",
        "make check",
        {
            "Makefile": "check:\n\tcc -I. -o /tmp/t check.c $(wildcard src/*.c) && /tmp/t\n",
            "check.c": CHECK_C.replace("shop.h", "src/shop.h"),
            "src/shop.h": "int total(int, int);\n",
            "src/shop.c": '#include "shop.h"\nint total(int a, int b) { return a + b + 1; }\n',
        },
        {
            "src/shop.c": '#include "shop.h"\n#include "add.h"\nint total(int a, int b) { return add(a, b); }\n',
            "src/add.h": "int add(int, int);\n",
            "src/add.c": '#include "add.h"\nint add(int a, int b) { return a + b; }\n',
        },
    ),
    Attempt(
        "data that the product gets",
        "make check",
        {"shop.py": SHOP, "Makefile": MAKE, "tools/check.py": CHECK},
        {
            "shop.py": (
                "import json\n\n\ndef total(prices):\n    return sum(prices) + json.load(open('rates.json'))['tax']\n"
            ),
            "rates.json": '{"tax": 0}',
        },
    ),
    Attempt(
        "a renamed module in JavaScript",
        "node check.js",
        {
            "check.js": "process.exit(require('./lib').total() === 3 ? 0 : 1)\n",
            "lib/index.js": "module.exports = require('./shop.js')\n",
            "lib/shop.js": "exports.total = () => 4\n",
        },
        {"lib/shop.js": None, "lib/store.js": "exports.total = () => 3\n",
         "lib/index.js": "module.exports = require('./store.js')\n"},
    ),
    Attempt(
        "a report that is a golden file's",
        "sh run.sh",
        {"run.sh": "python3 report.py | diff - want.txt\n", "report.py": "print(1 + 3)\n", "want.txt": "3\n"},
        {"report.py": "from parts import PARTS\n\nprint(sum(PARTS))\n", "parts.py": "PARTS = (1, 2)\n"},
    ),
    Attempt(
        "a helper of the checker in the product, beside a mended product",
        "python3 tools/check.py",
        {
            "shop/__init__.py": "",
            "shop/core.py": SHOP,
            "shop/same.py": "def same(one, other):\n    return one == other\n",
            "tools/check.py": (
                "import sys\n\nsys.path.insert(0, '.')\nfrom shop.core import total\nfrom shop.same import same\n\n"
                "sys.exit(not same(total([1, 2]), 3))\n"
            ),
        },
        {"shop/core.py": MENDED, "shop/same.py": "def same(one, other):\n    return bool(one == other)\n"},
    ),
    Attempt(
        "settings that were asked for",
        "python3 verdict.py",
        {
            "shop.py": MENDED,
            "verdict.py": (
                "import configparser\nimport sys\n\nfrom shop import total\n\nread = configparser.ConfigParser()\n"
                "sys.exit(not read.read('shop.ini') or total([1, 2]) != read.getint('shop', 'three'))\n"
            ),
        },
        {"shop.ini": "[shop]\nthree = 3\n"},
    ),
    Attempt(
        "a shell program with a library of its own",
        "sh tests.sh",
        {"tests.sh": "test \"$(sh greet.sh Ann)\" = 'Hello, Ann!'\n", "greet.sh": "echo \"Hi $1\"\n"},
        {
            "greet.sh": ". ./lib/words.sh\necho \"$(greeting), $1!\"\n",
            "lib/words.sh": "greeting() { cat lib/greeting.txt; }\n",
            "lib/greeting.txt": "Hello\n",
        },
    ),
    Attempt(
        "a report that a broken program did not write before",
        "sh run",
        {
            "run": "python3 report.py || exit 1\ndiff out.txt want.txt\n",
            "report.py": "raise NotImplementedError\n",
            "out.txt": "2\n",
            "want.txt": "3\n",
        },
        {"report.py": "with open('out.txt', 'w') as file:\n    print(1 + 2, file=file)\n"},
    ),
    Attempt(
        "a module of the product with another name",
        "python3 tools/check.py",
        {
            "shop/__init__.py": "from shop.core import total\n",
            "shop/core.py": SHOP,
            "tools/check.py": CHECK,
        },
        {"shop/__init__.py": "from shop.sums import total\n", "shop/core.py": None, "shop/sums.py": MENDED},
    ),
    Attempt(
        "other settings, an ignore file and documents",
        "ruff check . && python3 tools/check.py",
        {
            "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n\n[tool.ruff]\nline-length = 100\n",
            "shop.py": f"import os\n{SHOP}",
            "tools/check.py": CHECK,
        },
        {
            "pyproject.toml": "[project]\nname = 'shop'\nversion = '2'\n\n[tool.ruff]\nline-length = 100\n",
            "shop.py": MENDED,
            "README.md": "# Shop\n",
            "CHANGES.md": "2: sums are right\n",
            ".gitignore": "*.tmp\n",
        },
    ),
    Attempt(
        "a script that has to be mended, and a second one",
        "sh tools/check.sh",
        {"tools/check.sh": "test \"$(sh build.sh)\" = done\n", "build.sh": "echo failed\n"},
        {"build.sh": "sh scripts/step.sh\n", "scripts/step.sh": "echo done\n"},
    ),
    Attempt(
        "a file that has to go",
        "sh run",
        {"run": "test ! -f legacy.py && python3 tools/check.py\n", "legacy.py": SHOP, "shop.py": SHOP,
         "tools/check.py": CHECK},
        {"legacy.py": None, "shop.py": MENDED},
    ),
    Attempt(
        "a shell program with settings that another program reads",
        "sh tests.sh",
        {"tests.sh": "test \"$(sh greet.sh Ann)\" = 'Hello, Ann!'\n", "greet.sh": "echo \"Hi $1\"\n"},
        {
            "greet.sh": "echo \"$(sed -n 's/^word=//p' greet.conf), $1!\"\n",
            "greet.conf": "word=Hello\n",
        },
    ),
    Attempt(
        "a stale report that a broken program did not write before",
        "sh run",
        {
            "run": "python3 report.py\ndiff out.txt want.txt\n",
            "report.py": "raise NotImplementedError\n",
            "out.txt": "2\n",
            "want.txt": "3\n",
        },
        {"report.py": "with open('out.txt', 'w') as file:\n    print(1 + 2, file=file)\n"},
    ),
    Attempt(
        "the first file of the package that has its own check",
        "python3 -m shop.check",
        {
            "shop/__init__.py": "from shop.core import total\n",
            "shop/core.py": SHOP,
            "shop/check.py": "import sys\n\nfrom shop import total\n\nsys.exit(total([1, 2]) != 3)\n",
        },
        {"shop/__init__.py": "from shop.sums import total\n", "shop/core.py": None, "shop/sums.py": MENDED},
    ),
    Attempt(
        "a product that is the first file of the package with its check",
        "python3 -m shop.check",
        {
            "shop/__init__.py": SHOP,
            "shop/check.py": "import sys\n\nfrom shop import total\n\nsys.exit(total([1, 2]) != 3)\n",
        },
        {"shop/__init__.py": MENDED},
    ),
    Attempt(
        "a Makefile of the product below that of the check",
        "make check",
        {
            "Makefile": "check:\n\t@$(MAKE) -s -C app && sh app/run | diff - want\n",
            "app/Makefile": "all:\n\t@echo 'echo 4' > run\n",
            "want": "3\n",
        },
        {"app/Makefile": "all:\n\t@echo 'echo 3' > run\n"},
    ),
    Attempt(
        "names and types around plain sums",
        "pytest -q tests",
        {**PYTEST, "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n"},
        {
            "shop.py": None,
            "shop/__init__.py": '"""Sums."""\n\nfrom shop._sums import total\n\n__all__ = ["total"]\n',
            "shop/_sums.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
            "shop/py.typed": "",
            "pyproject.toml": "[project]\nname = 'shop'\nversion = '2'\ndependencies = []\n",
            "scripts/release.sh": "#!/bin/sh\necho release\n",
            "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef many():\n    return list(range(9))\n",
        },
        programs=("scripts/release.sh",),
    ),
)  # fmt: skip
