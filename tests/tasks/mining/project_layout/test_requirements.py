import sys

import pytest

from gametape.tasks.project import Project

from .test_detection import TEST, find

OWN = {"pkg__INIT_py": "", "tests__test_a_py": TEST}


def found(**texts: str) -> Project:
    return find(**{**OWN, **texts})


RUN_TIME = [
    {"pyproject": "[project]\nname='pkg'\ndependencies=['six>=1', 'attrs']\n"},
    {"pyproject": "[tool.poetry]\nname='pkg'\n[tool.poetry.dependencies]\npython='^3.8'\nsix='>=1'\nattrs='*'\n"},
    {"setup_cfg": "[options]\ninstall_requires =\n    six>=1\n    attrs  # why\n"},
    {"setup_py": "from setuptools import setup\nsetup(install_requires=['six>=1'] + ['attrs'])\n"},
    {"info": "Metadata-Version: 2.1\nName: pkg\nVersion: 1\nRequires-Dist: six>=1\nRequires-Dist: attrs\n"},
    {"pkg.egg-info/requires.txt": "six>=1\nattrs\n\n[test]\nmock\n"},
    {"requirements.txt": "six>=1  # why\n-e .\n--index-url https://example.invalid\nattrs\n./local\n"},
]


@pytest.mark.parametrize("texts", RUN_TIME, ids=lambda texts: next(iter(texts)))
def test_what_a_project_needs(texts: dict[str, str]) -> None:
    assert found(**texts).requirements == ("attrs", "six>=1")


def test_markers_are_decided_for_this_python() -> None:
    lines = ["six; python_version < '3'", "attrs; python_version >= '3.8'", "mock; extra == 'x'", "idna; broken"]
    assert found(pyproject=f"[project]\nname='pkg'\ndependencies={lines}\n").requirements == ("attrs",)
    section = "[:python_version >= '3']\nattrs\n[:python_version < '3']\nsix\n"
    assert found(**{"pkg.egg-info/requires.txt": section}).requirements == ("attrs",)


def test_addresses_are_not_followed() -> None:
    lines = ["six @ https://example.invalid/six.tar.gz", "attrs @ git+https://example.invalid/attrs"]
    assert found(pyproject=f"[project]\nname='pkg'\ndependencies={lines}\n").requirements == ("attrs", "six")


@pytest.mark.parametrize(
    ("bound", "meant"),
    [
        ("^1.2", "six<2,>=1.2"),
        ("^0.2.3", "six<0.3,>=0.2.3"),
        ("~1.2.3", "six<1.3,>=1.2.3"),
        ("1.16", "six==1.16"),
        ("1.*", "six==1.*"),
        (">=1,<3", "six<3,>=1"),
        ("*", "six"),
        ("^1 || ^2", "six"),
    ],
)
def test_poetrys_operators(bound: str, meant: str) -> None:
    assert found(pyproject=f"[tool.poetry]\nname='pkg'\n[tool.poetry.dependencies]\nsix='{bound}'\n").requirements == (
        meant,
    )


USED = "import yaml\nimport six\n" + TEST
FOR_TESTS = [
    {"pyproject": "[project]\nname='pkg'\n[project.optional-dependencies]\ntest=['PyYAML>5', 'six', 'tox']\n"},
    {"pyproject": "[dependency-groups]\ndev=[{include-group='a'}, 'mypy']\na=['PyYAML>5', 'six', 'black']\n"},
    {"pyproject": "[tool.poetry]\nname='pkg'\n[tool.poetry.group.dev.dependencies]\nPyYAML='>5'\nsix='*'\ntox='*'\n"},
    {"pyproject": "[tool.hatch.envs.default]\ndependencies=['PyYAML>5', 'six', 'pytest-cov']\n"},
    {"setup_cfg": "[options.extras_require]\ntesting =\n    PyYAML>5\n    six\n    flake8\n"},
    {"setup_py": "from setuptools import setup\nsetup(tests_require=['PyYAML>5', 'six', 'sphinx'])\n"},
    {
        "tox": "[testenv]\ndeps =\n    pytest\n    py3: PyYAML>5\n    special: numpy\n    -rmore.txt\n",
        "more.txt": "six\n",
    },
    {"requirements-dev.txt": "-r more.txt\nPyYAML>5\nsphinx\n", "more.txt": "six\n"},
    {"requirements/test.txt": "PyYAML>5\nsix\npytest==7\n"},
]


@pytest.mark.parametrize("texts", FOR_TESTS, ids=lambda texts: next(iter(texts.values())).split("\n")[0])
def test_of_what_is_declared_for_tests_only_what_they_use(texts: dict[str, str]) -> None:
    project = found(tests__test_a_py=USED, **texts)
    assert (project.requirements, project.test_requirements) == ((), ("PyYAML>5", "six"))


def test_what_the_package_uses_if_it_is_there_counts_too() -> None:
    own = "[project]\nname='pkg'\n[project.optional-dependencies]\ntest=['regex']\nfast=['numpy']\n"
    optional = "try:\n    import regex, numpy\nexcept ImportError:\n    pass\n"
    assert found(pyproject=own, pkg__INIT_py=optional).test_requirements == ("regex",)


def test_an_own_extra_stands_for_what_is_in_it() -> None:
    own = "[project]\nname='pkg'\n[project.optional-dependencies]\nyaml=['PyYAML>5']\ntest=['pkg[yaml]', 'six']\n"
    assert found(pyproject=own, tests__test_a_py=USED).test_requirements == ("PyYAML>5", "six")


def test_what_is_imported_and_not_declared() -> None:
    text = (
        "import yaml, dateutil.parser, os, pkg, helper, tests.other\nfrom bs4 import x\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "def test_it():\n    import pandas\n"
    )
    project = found(
        tests__test_a_py=text,
        tests__helper_py="import simplejson\n",
        tests__other_py="",
        tests__alone_py="import scipy\n",
    )
    assert project.test_requirements == ("beautifulsoup4", "python-dateutil", "PyYAML", "simplejson")


def test_without_any_declaration_the_package_tells() -> None:
    code = "import requests\ntry:\n    import numpy\nexcept ImportError:\n    pass\n"
    assert found(pkg__INIT_py=code).test_requirements == ("requests",)
    assert found(pkg__INIT_py=code, pyproject="[project]\nname='pkg'\n").test_requirements == ()


@pytest.mark.parametrize(
    ("texts", "plugin"),
    [
        ({"tests__test_a_py": "def test_it(mocker): pass\n"}, ("pytest-mock",)),
        ({"tests__test_a_py": "import pytest\n@pytest.fixture\ndef mocker(): pass\ndef test_it(mocker): pass\n"}, ()),
        ({"tests__test_a_py": "import pytest\n@pytest.mark.asyncio\nasync def test_it(): pass\n"}, ("pytest-asyncio",)),
        ({"tox": "[pytest]\nasyncio_mode = auto\n"}, ("pytest-asyncio",)),
        ({"tox": "[pytest]\nrequired_plugins = pytest-env>1\n"}, ("pytest-env",)),
        ({"tests__test_a_py": "def test_it(snapshot): pass\n"}, ()),
        ({"tests__test_a_py": "def test_it(snapshot): pass\n", "test-requirements.txt": "syrupy<9\n"}, ("syrupy<9",)),
        ({"test-requirements.txt": "pytest-cov\npytest-xdist\n"}, ()),
    ],
)  # fmt: skip
def test_plugins_by_the_words_that_need_them(texts: dict[str, str], plugin: tuple[str, ...]) -> None:
    assert found(**texts).test_requirements == plugin


def test_never_the_project_itself_nor_what_every_environment_has() -> None:
    own = "[project]\nname='Pkg'\ndependencies=['pkg', 'pytest>8']\n"
    own += "[dependency-groups]\ntest=['pkg', 'coverage', 'pluggy']\n"
    project = found(pyproject=own, tests__test_a_py=f"import pkg, pytest, coverage, pluggy, _pytest\n{TEST}")
    assert (project.requirements, project.test_requirements) == ((), ())


def test_the_library_of_this_python_is_not_required() -> None:
    text = "".join(f"import {name}\n" for name in sorted(sys.stdlib_module_names))
    assert found(tests__test_a_py=text + TEST).test_requirements == ()
