import base64
import hashlib
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.task import Origin
from gametape.tasks.dependency_env import build
from gametape.tasks.dependency_env.build import (
    DependencyEnv,
    build_dependency_env,
    check_given_interpreter,
    rebuild_dependency_env,
)
from gametape.tasks.dependency_env.distributions import read_installed, remove_startup_code, site_packages
from gametape.tasks.dependency_env.runner_requirements import why_runner_needs
from gametape.tasks.project import Project, ProjectRefused
from tests.tasks.mining.project_layout.test_detection import TEST, find


def project(name: str = "tiny-thing", requires: tuple[str, ...] = (), tests: tuple[str, ...] = ()) -> Project:
    package = name.replace("-", "_")
    found = find(
        pyproject=f"[project]\nname='{name}'\nversion='1.5'\ndependencies={list(requires)}\n",
        **{f"{package}__INIT_py": "", "tests__test_a_py": TEST, "test-requirements.txt": "\n".join(tests)},
    )
    return Project(**{**vars(found), "test_requirements": tests})


def silent(_: str) -> None: ...


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def built(home: Path) -> DependencyEnv:
    try:
        return build_dependency_env(project(), home, silent)
    except MissingDependency as error:
        pytest.skip(f"no package index: {error}")


def said(env: DependencyEnv, question: str) -> str:
    done = subprocess.run([env.interpreter, "-I", "-c", question], capture_output=True, text=True, cwd="/", check=True)
    return done.stdout.strip()


def test_the_project_is_there_by_name_only(built: DependencyEnv) -> None:
    assert said(built, "import importlib.metadata as m; print(m.version('tiny-thing'))") == "1.5"
    for name in ("tiny_thing", "pip", "setuptools"):
        assert said(built, f"import importlib.util as u; print(u.find_spec('{name}'))") == "None"


def test_it_has_the_runner_that_gametape_has_and_says_all_that_is_installed(built: DependencyEnv) -> None:
    assert said(built, "import pytest; print(pytest.__version__)") == pytest.__version__
    names = [line.partition("==")[0] for line in built.dependencies]
    assert {"pytest", "coverage", "pluggy"} <= set(names)
    assert all("==" in line for line in built.dependencies)
    assert "tiny-thing" not in names


def test_nothing_of_it_runs_when_the_interpreter_starts(built: DependencyEnv) -> None:
    started = said(
        built, "import sys; print([name for name in sys.modules if name.startswith(('coverage', '_distutils'))])"
    )
    assert started == "[]"
    assert not [*site_packages(built.interpreter).glob("*.pth")]


def test_what_starts_with_an_interpreter_is_taken_away(tmp_path: Path) -> None:
    interpreter = bare(tmp_path / "env")
    directory = site_packages(interpreter)
    (directory / "a.pth").write_text("import os; os.abort()\n")
    (directory / "b.pth").write_text("sub\nimport\tos; os.abort()\n")
    (directory / "sitecustomize.py").write_text("import os; os.abort()\n")
    (directory / "usercustomize").mkdir()
    (directory / "usercustomize/__init__.py").write_text("import os; os.abort()\n")
    remove_startup_code(interpreter)
    assert subprocess.run([interpreter, "-c", ""], check=False).returncode == 0
    assert (directory / "b.pth").read_text() == "sub\n"
    assert not (directory / "a.pth").exists()


def test_an_interpreter_that_was_replaced_is_refused(tmp_path: Path) -> None:
    interpreter = bare(tmp_path / "one")
    interpreter.unlink()
    interpreter.write_text("#!/bin/sh\n")
    with pytest.raises(ProjectRefused, match="replaces the interpreter"):
        remove_startup_code(interpreter)
    interpreter = bare(tmp_path / "two")
    (tmp_path / "two/pyvenv.cfg").write_text("home = /tmp\n")
    with pytest.raises(ProjectRefused, match="replaces the interpreter"):
        remove_startup_code(interpreter)


def bare(path: Path) -> Path:
    build.venv.EnvBuilder(symlinks=True, with_pip=False).create(path)
    return path / "bin/python"


def test_it_is_built_once(built: DependencyEnv, home: Path) -> None:
    told: list[str] = []
    assert build_dependency_env(project(), home, told.append) == built
    assert told == []


def test_it_is_built_again_from_what_is_pinned(built: DependencyEnv, home: Path) -> None:
    again = rebuild_dependency_env(built.dependencies, Origin(name="tiny-thing", version="1.5"), home, silent)
    assert again.dependencies == built.dependencies
    assert again.interpreter != built.interpreter
    assert said(again, "import importlib.metadata as m; print(m.version('tiny-thing'))") == "1.5"
    assert (
        rebuild_dependency_env(built.dependencies, Origin(name="tiny-thing", version="1.5"), home, pytest.fail) == again
    )


KILLED = """
import sys
from pathlib import Path
from gametape.tasks.dependency_env import build
from gametape.core.task import Origin
def stall(interpreter):
    print("inside", flush=True)
    import time; time.sleep(100000)
build._shared_env(Path(sys.argv[1]), ("key",), Origin(name="x", version="1"), stall)
"""


def test_half_an_environment_is_never_believed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "inside\n"
        os.kill(builder.pid, signal.SIGKILL)
    filled: list[Path] = []
    made = build._shared_env(tmp_path, ("key",), Origin(name="x", version="1"), filled.append)
    assert filled == [made.interpreter]
    assert said(made, "import importlib.metadata as m; print(m.version('x'))") == "1"


HALF_INSTALLED = """
import sys
from pathlib import Path
from gametape.core.task import Origin
from gametape.tasks.dependency_env import build, distributions
def install(interpreter):
    print("inside", flush=True)
    distributions.install_distributions(interpreter, ["slow-thing"])
distributions.sys.executable = sys.argv[2]
build._shared_env(Path(sys.argv[1]), ("key",), None, install)
"""


def test_an_installer_that_outlives_its_builder_is_waited_for(tmp_path: Path) -> None:
    installer = tmp_path / "pip"
    installer.write_text(f"#!/bin/sh\necho began > {tmp_path}/began\nsleep 2\necho over > {tmp_path}/over\n")
    installer.chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", HALF_INSTALLED, str(tmp_path), str(installer)]) as builder:
        while not (tmp_path / "began").exists():
            time.sleep(0.01)
        os.kill(builder.pid, signal.SIGKILL)
    build._shared_env(tmp_path, ("key",), None, silent_fill)
    assert (tmp_path / "over").exists()


def silent_fill(_: Path) -> None: ...


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(_: Path) -> None:
        raise ProjectRefused("environment", "no")

    with pytest.raises(ProjectRefused):
        build._shared_env(tmp_path, ("key",), None, fail)
    assert [path.name for path in (tmp_path / "environments").iterdir() if path.is_dir()] == []


def wheel(directory: Path, name: str, version: str, files: dict[str, str], requires: tuple[str, ...] = ()) -> None:
    """A wheel as an index would have it."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_hash(text)},{len(text)}\n" for path, text in texts.items())
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**texts, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of its own, with nothing behind it; pytest and coverage are stand-ins there."""
    directory = tmp_path / "wheels"
    for pin in build._runner_pins():
        name, _, version = pin.partition("==")
        wheel(directory, name, version, {f"{name}.py": ""})
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


def test_a_requirement_that_needs_the_project_does_not_bring_it_along(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "tiny_thing", "1.5", {"tiny_thing/__init__.py": "answer = 1\n", "tiny_thing/sub/a.py": ""})
    wheel(wheels, "plugin", "2", {"plugin.py": ""}, ("tiny_thing",))
    made = build_dependency_env(project(requires=("plugin",)), tmp_path, silent)
    assert "plugin==2" in made.dependencies
    assert not [line for line in made.dependencies if line.startswith("tiny")]
    assert not (site_packages(made.interpreter) / "tiny_thing").exists()
    assert said(
        made, "import importlib.metadata as m; print(m.version('tiny-thing'), m.files('tiny-thing')[0].name)"
    ) == ("1.5 METADATA")


def test_another_distribution_with_the_same_package_is_refused(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "fork", "2", {"tiny_thing/__init__.py": "answer = 1\n"})
    with pytest.raises(ProjectRefused, match="fork") as caught:
        build_dependency_env(project(requires=("fork",)), tmp_path, silent)
    assert caught.value.reason == "self_dependency"


def test_a_requirement_without_a_wheel(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "plugin", "2", {"plugin.py": ""}, ("missing_too",))
    with pytest.raises(ProjectRefused, match=r"missing.*--python") as caught:
        build_dependency_env(project(requires=("missing",)), tmp_path, silent)
    assert caught.value.reason == "environment"
    told: list[str] = []
    made = build_dependency_env(project(tests=("missing", "plugin")), tmp_path, told.append)
    assert [line.partition("==")[0] for line in made.dependencies] == ["coverage", "pytest"]
    assert sum("left out" in line for line in told) == 2


def test_versions_of_test_requirements_give_way(wheels: Path, tmp_path: Path) -> None:
    for version in ("1", "2"):
        wheel(wheels, "plugin", version, {"plugin.py": ""}, (f"base=={version}",))
        wheel(wheels, "base", version, {"base.py": ""})
    made = build_dependency_env(project(requires=("base==2",), tests=("plugin==1",)), tmp_path, silent)
    assert {"base==2", "plugin==2"} <= set(made.dependencies)


def test_an_index_that_cannot_be_reached_is_something_lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"INDEX_URL": "http://127.0.0.1:9/simple", "RETRIES": "1", "TIMEOUT": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(MissingDependency, match="cannot be reached"):
        build_dependency_env(project(), tmp_path, silent)


@pytest.mark.parametrize("name", ["pluggy", "iniconfig", "packaging", "pygments", "coverage", "pytest", "json"])
def test_what_the_runner_is_made_of_is_refused(name: str, built: DependencyEnv, tmp_path: Path) -> None:
    for refuses in (
        lambda: build_dependency_env(project(name), tmp_path, silent),
        lambda: check_given_interpreter(project(name), built.interpreter),
    ):
        with pytest.raises(ProjectRefused) as caught:
            refuses()
        assert caught.value.reason == "self_hosting"


@pytest.mark.parametrize("name", ["attrs", "tomli", "six", "tiny-thing"])
def test_anything_else_is_not(name: str) -> None:
    assert why_runner_needs(name, [name.replace("-", "_")]) is None


def test_an_interpreter_that_somebody_brings(built: DependencyEnv) -> None:
    given = check_given_interpreter(project("another"), built.interpreter)
    assert given.interpreter == built.interpreter
    assert set(built.dependencies) < set(given.dependencies)


def test_one_that_has_the_project_is_refused(built: DependencyEnv) -> None:
    with pytest.raises(ProjectRefused, match="uninstall") as caught:
        check_given_interpreter(find(pydantic__INIT_py="", tests__test_a_py=TEST), Path(sys.executable))
    assert caught.value.reason == "installed_copy"


def test_one_that_has_the_project_in_a_namespace_is_refused(tmp_path: Path, built: DependencyEnv) -> None:
    spaced = find(pyproject="[project]\nname='space.own'\n", space__own__INIT_py="", tests__test_a_py=TEST)
    directory = site_packages(built.interpreter) / "space"
    try:
        (directory / "other").mkdir(parents=True)
        assert check_given_interpreter(spaced, built.interpreter)
        (directory / "own").mkdir()
        (directory / "own/__init__.py").write_text("raise SystemExit('run')\n")
        with pytest.raises(ProjectRefused, match=r"space\.own"):
            check_given_interpreter(spaced, built.interpreter)
    finally:
        build.shutil.rmtree(directory)


def test_one_that_lacks_pytest_is_told_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="pip install pytest coverage"):
        check_given_interpreter(project(), bare(tmp_path / "env"))


def test_one_that_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("no")
    for path in (tmp_path / "missing", tmp_path / "python"):
        with pytest.raises(BadInput, match="not a Python that can be run"):
            check_given_interpreter(project(), path)


@pytest.mark.slow
def test_a_real_set_of_requirements(home: Path) -> None:
    made = build_dependency_env(project(requires=("PyYAML>=6", "python-dateutil"), tests=("hypothesis",)), home, silent)
    assert said(made, "import yaml, dateutil.parser, hypothesis; print('there')") == "there"
    again = rebuild_dependency_env(made.dependencies, None, home, silent)
    assert [one.pin for one in read_installed(again.interpreter)] == list(made.dependencies)
