import pytest

from gametape.core.errors import BadInput
from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.project_layout.detection import find_project
from gametape.tasks.mining.project_layout.suite_discovery import project_test_files as files_of
from gametape.tasks.project import Project, ProjectRefused

TEST = "def test_it():\n    assert True\n"
CASE = "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        pass\n"


def find(tests: str | None = None, hint: str = "", **texts: str) -> Project:
    return find_project(tree_of(texts), tests, hint)


def tree_of(texts: dict[str, str]) -> SourceTree:
    """`__` in a name stands for `/`, and `_py` for `.py`, so that trees can be written as keywords."""
    return SourceTree({_path(name): text.encode() for name, text in texts.items()})


def _path(name: str) -> str:
    special = {"pyproject": "pyproject.toml", "setup_cfg": "setup.cfg", "tox": "tox.ini", "info": "PKG-INFO"}
    if name in special:
        return special[name]
    path = name.replace("INIT", "@init@").replace("__", "/").replace("@init@", "__init__")
    return path.removesuffix("_py") + ".py" if path.endswith("_py") else path


def places(project: Project) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return project.source_paths, project.test_paths, project.import_roots


def test_a_flat_layout() -> None:
    project = find(pkg__INIT_py="", tests__test_a_py=TEST, docs__conf_py="", setup_py="", examples__a_py="")
    assert places(project) == (("pkg",), ("tests",), (".",))


def test_a_src_layout() -> None:
    project = find(src__pkg__INIT_py="", test__test_a_py=TEST, tools__x_py="")
    assert places(project) == (("src/pkg",), ("test",), ("src",))


def test_a_single_module_beside_its_test() -> None:
    project = find(
        thing_py="", test_thing_py=TEST, setup_py="from setuptools import setup; setup(py_modules=['thing'])"
    )
    assert places(project) == (("thing.py",), ("test_thing.py",), (".",))


def test_tests_inside_the_package() -> None:
    project = find(pkg__INIT_py="", pkg__tests__INIT_py="", pkg__tests__test_a_py=TEST, pkg__sub__tests__test_b_py=TEST)
    assert places(project) == (("pkg",), ("pkg/sub/tests", "pkg/tests"), (".",))
    assert files_of(project) == ("pkg/sub/tests/test_b.py", "pkg/tests/test_a.py")


def test_test_files_beside_the_code() -> None:
    project = find(pkg__INIT_py="", pkg__a_py="", pkg__a_test_py=TEST)
    assert project.test_paths == ("pkg/a_test.py",)


def test_a_testing_package_for_others_is_no_test_directory() -> None:
    project = find(
        pkg__INIT_py="", pkg__testing__INIT_py="", pkg__testing__tests__test_a_py=TEST, tests__test_b_py=TEST
    )
    assert project.test_paths == ("pkg/testing/tests", "tests")


def test_a_namespace_package_counts_under_its_topmost_name() -> None:
    project = find(pyproject="[project]\nname='space.pkg'\n", src__space__pkg__INIT_py="", tests__test_a_py=TEST)
    assert places(project) == (("src/space",), ("tests",), ("src",))


def test_tests_that_only_unittest_would_take_by_their_names() -> None:
    project = find(pkg__INIT_py="", tests__INIT_py="", tests__numbers_py=CASE, tests__helper_py="def make(): pass\n")
    assert project.test_paths == ("tests",)
    assert files_of(project) == ("tests/numbers.py",)


def test_a_file_of_all_tests_at_the_top() -> None:
    assert files_of(find(pkg__INIT_py="", all_tests_py=CASE)) == ("all_tests.py",)


def test_own_patterns_count_if_the_files_hold_tests_themselves() -> None:
    own = "[tool.pytest.ini_options]\npython_files = 'check_*.py'\n"
    texts = {"pkg__INIT_py": "", "tests__check_a_py": TEST, "tests__test_b_py": TEST}
    assert files_of(find(pyproject=own, **texts)) == ("tests/check_a.py",)
    gathering = "[tool.pytest.ini_options]\npython_files = 'every.py'\n"
    gathered = find(pyproject=gathering, tests__every_py="from .test_b import test_it\n", **texts)
    assert files_of(gathered) == ("tests/test_b.py",)


def test_directories_that_pytest_does_not_enter_are_passed_over() -> None:
    own = "[tool.pytest.ini_options]\nnorecursedirs = ['cases', 'tests/more']\n"
    project = find(
        pyproject=own,
        pkg__INIT_py="",
        tests__test_a_py=TEST,
        tests__cases__test_b_py=TEST,
        tests__more__test_c_py=TEST,
    )
    assert files_of(project) == ("tests/test_a.py",)


def test_testpaths_are_a_hint() -> None:
    texts = {"pkg__INIT_py": "", "tests__unit__test_a_py": TEST, "tests__slow__test_b_py": TEST, "qa__test_c_py": TEST}
    project = find(pyproject="[tool.pytest.ini_options]\ntestpaths = ['tests/unit']\n", **texts)
    assert project.test_paths == ("tests",)
    assert files_of(project) == ("tests/unit/test_a.py",)
    assert find(tox="[pytest]\ntestpaths = qa\n", **texts).test_paths == ("qa",)
    assert "tests" in find(tox="[pytest]\ntestpaths = gone\n", **texts).test_paths


def test_a_package_as_testpath_means_the_tests_in_it() -> None:
    project = find(
        tox="[pytest]\ntestpaths = pkg\n", pkg__INIT_py="", pkg__tests__test_a_py=TEST, tests__test_b_py=TEST
    )
    assert project.test_paths == ("pkg/tests",)


def test_where_somebody_says_the_tests_are() -> None:
    texts = {"pkg__INIT_py": "", "tests__test_a_py": TEST, "qa__checks_py": CASE}
    assert find("qa/", **texts).test_paths == ("qa",)
    assert files_of(find("./qa/checks.py", **texts)) == ("qa/checks.py",)
    for wrong in ("missing", "/tests", "../tests", "", "."):
        with pytest.raises(BadInput, match="no such file or directory in the code base"):
            find(wrong, **texts)
    with pytest.raises(ProjectRefused, match="no tests were found in pkg") as caught:
        find("pkg", **texts)
    assert caught.value.reason == "no_tests"


DECLARATIONS = [
    {"pyproject": "[tool.setuptools]\npackages = ['one', 'one.two']\n"},
    {"pyproject": "[tool.setuptools]\npy-modules = ['one']\n"},
    {"pyproject": "[tool.setuptools.packages.find]\ninclude = ['one*']\n"},
    {"pyproject": "[tool.setuptools.packages.find]\nexclude = ['other*']\n"},
    {"pyproject": "[tool.flit.module]\nname = 'one'\n"},
    {"pyproject": "[tool.poetry]\nname = 'x'\npackages = [{ include = 'one' }]\n"},
    {"pyproject": "[tool.hatch.build.targets.wheel]\npackages = ['one']\n"},
    {"pyproject": "[project]\nname = 'One'\n"},
    {"pyproject": "[project]\nname = 'python-one'\n"},
    {"setup_cfg": "[options]\npackages =\n    one\n    one.two\n"},
    {"setup_cfg": "[options]\npackages = find:\n[options.packages.find]\nexclude =\n    other\n    tests*\n"},
    {"setup_py": "import setuptools\nNAMES = ['one']\nsetuptools.setup(name='x', packages=NAMES + ['one.two'])\n"},
    {"setup_py": "from setuptools import *\nsetup(packages=find_packages(exclude=['other', 'tests']))\n"},
    {"setup_py": "from setuptools import *\nkw = dict(packages=['one'])\nsetup(**kw)\n"},
    {"one.egg-info/top_level.txt": "one\ntests\n"},
]


@pytest.mark.parametrize("texts", DECLARATIONS, ids=lambda texts: " ".join(texts.values()).split("\n")[0])
def test_what_is_declared_is_the_package(texts: dict[str, str]) -> None:
    own = {
        "one__INIT_py": "",
        "one__two__INIT_py": "",
        "other__INIT_py": "",
        "tests__INIT_py": "",
        "tests__test_a_py": TEST,
    }
    assert find(**texts, **own).source_paths == ("one",)


def test_roots_that_are_declared() -> None:
    own = {"code__one__INIT_py": "", "tests__test_a_py": TEST}
    for texts in (
        {"setup_py": "from setuptools import *\nsetup(package_dir={'': 'code'}, packages=find_packages('code'))\n"},
        {"setup_cfg": "[options]\npackage_dir =\n    =code\npackages = find:\n[options.packages.find]\nwhere=code\n"},
        {"pyproject": "[tool.setuptools.packages.find]\nwhere = ['code']\n"},
        {"pyproject": "[tool.poetry]\npackages = [{ include = 'one', from = 'code' }]\n"},
        {"pyproject": "[tool.hatch.build.targets.wheel]\npackages = ['code/one']\n"},
    ):
        assert places(find(**texts, **own)) == (("code/one",), ("tests",), ("code",))


def test_setup_py_is_never_run() -> None:
    assert find(setup_py="raise SystemExit('run')\n", pkg__INIT_py="", tests__test_a_py=TEST).source_paths == ("pkg",)


def test_the_top_is_a_root_if_tests_import_from_it() -> None:
    project = find(
        src__pkg__INIT_py="", tests__INIT_py="", tests__base_py="", tests__test_a_py=f"import tests.base\n{TEST}"
    )
    assert project.import_roots == ("src", ".")


def test_name_and_version() -> None:
    own = {"pkg__INIT_py": "__version__ = '3.1'\n", "tests__test_a_py": TEST}
    named = [
        (find(info="Metadata-Version: 2.1\nName: Pkg\nVersion: 1.0\n", **own), "Pkg", "1.0"),
        (find(pyproject="[project]\nname = 'Pkg'\nversion = '2.0'\n", **own), "Pkg", "2.0"),
        (find(pyproject="[project]\nname = 'Pkg'\ndynamic = ['version']\n", **own), "Pkg", "3.1"),
        (find(setup_cfg="[metadata]\nname = Pkg\nversion = attr: pkg.__version__\n", **own), "Pkg", "3.1"),
        (find(hint="pkg-2.4.0.tar.gz", **own), "pkg", "3.1"),
        (find(**own), "pkg", "3.1"),
        (find(pkg__INIT_py="", tests__test_a_py=TEST), "pkg", "0"),
    ]
    for project, name, version in named:
        assert (project.name, project.version) == (name, version)
        assert "PKG-INFO" not in project.tree


def refusal(**texts: str) -> tuple[str, str]:
    with pytest.raises(ProjectRefused) as caught:
        find(**texts)
    return caught.value.reason, str(caught.value)


def test_refusals_say_what_was_looked_for() -> None:
    assert refusal()[0] == "empty"
    assert refusal(README="hello")[0] == "empty"
    assert refusal(tests__test_a_py=TEST, docs__conf_py="", setup_py="")[0] == "no_package"
    reason, told = refusal(pkg__INIT_py="", docs__test_a_py=TEST)
    assert reason == "no_tests"
    assert "--tests" in told


def test_a_package_that_cannot_be_parsed_is_refused_with_the_place() -> None:
    reason, told = refusal(pkg__INIT_py="", pkg__bad_py="x = 1\ndef f(:\n", tests__test_a_py=TEST)
    assert reason == "syntax_error"
    assert told.startswith("pkg/bad.py: line 2 ")


def test_files_that_are_data_need_not_be_python() -> None:
    bad = "print 'old'\n"
    project = find(
        pkg__INIT_py="", pkg__templates__a_py=bad, tests__test_a_py=TEST, tests__test_bad_py=bad, docs__a_py=bad
    )
    assert project.tree.files["pkg/templates/a.py"] == bad.encode()
    assert files_of(project) == ("tests/test_a.py",)


def test_broken_settings_are_passed_over() -> None:
    own = {"pkg__INIT_py": "", "tests__test_a_py": TEST}
    assert find(pyproject="[[[", setup_cfg="no section", setup_py="def (", tox="x", **own).source_paths == ("pkg",)
