"""The decisions of `scripts/setup.sh`, with a Python, a pip and programs that only write down how they were called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
# Stands for a Python, and for the one of the environment that it makes.
echo "$0 $*" >>"$CALLS"
case "$*" in
*version_info*) exit "$OLD" ;;
*ensurepip*) exit 0 ;;
--version) echo "Python 3.12.0" ;;
"-m venv "*) mkdir -p "$3/bin" "$3/site" && cp "$0" "$3/bin/python" ;;
*get_path*) echo "$PWD/.venv/site" ;;
scripts/machine_torch.py*) [ -n "$TORCH" ] && echo "$TORCH" || { echo "it has no torch" >&2; exit 1; } ;;
*"-m pip install"*) [ -z "$PIP_FAILS" ] || { echo "ERROR: no network"; exit 1; } ;;
*) exit 9 ;;
esac
"""


class Machine:
    """A clone of the repository on a machine that has these programs and nothing else."""

    def __init__(self, place: Path, programs: tuple[str, ...] = ("python3", "bwrap", "rg")) -> None:
        self.clone, self.path, self.calls = place / "clone", place / "bin", place / "calls"
        (self.clone / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/setup.sh", self.clone / "scripts")
        shutil.copy(ROOT / "constraints.txt", self.clone)
        self.path.mkdir()
        for name in programs:
            (self.path / name).write_text(PYTHON if name == "python3" else "#!/bin/sh\n")
            (self.path / name).chmod(0o755)
        for name in ("sh", "cat", "cp", "date", "dirname", "echo", "grep", "head", "mkdir", "rm", "sed", "tail", "tee"):
            (self.path / name).symlink_to(shutil.which(name) or name)
        for name in ("touch", "id"):
            (self.path / name).symlink_to(shutil.which(name) or name)

    def setup(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"TORCH": "", "OLD": "0", "PIP_FAILS": "", "CALLS": str(self.calls), "PATH": str(self.path)}
        command = ["/bin/sh", "scripts/setup.sh", *words]
        env = {**known, **environment}
        return subprocess.run(command, cwd=self.clone, env=env, capture_output=True, text=True, check=False)

    @property
    def pip(self) -> str:
        return next(line for line in self.calls.read_text().splitlines() if "pip install" in line)

    def constraint(self, package: str) -> list[str]:
        lines = (self.clone / "build/constraints.txt").read_text().splitlines()
        return [line for line in lines if line.startswith(f"{package}==")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_torch_that_is_there_is_used_and_no_other_comes(machine: Machine) -> None:
    done = machine.setup("base", TORCH="2.11.0+cu130")
    assert done.returncode == 0, done.stderr
    assert f"using torch 2.11.0+cu130 of {machine.path}/python3" in done.stderr
    assert machine.constraint("torch") == ["torch==2.11.0+cu130"]
    assert "-c build/constraints.txt -e .[train]" in machine.pip
    links = (machine.clone / ".venv/site/machine-torch.pth").read_text()
    assert links == f"{machine.clone}/build/machine-torch\n"
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    used = (machine.clone / "build/constraints.txt").read_text().splitlines()
    assert {line.partition("==")[0] for line in used} == {line.partition("==")[0] for line in pinned}


def test_with_torch_the_tests_tools_come_too(machine: Machine) -> None:
    assert machine.setup(TORCH="2.12.1").returncode == 0
    assert "-e .[dev,train]" in machine.pip
    assert machine.constraint("torch") == ["torch==2.12.1"]


def test_without_one_the_pinned_torch_comes_where_it_is_asked_for(machine: Machine) -> None:
    done = machine.setup("base")
    assert done.returncode == 0, done.stderr
    assert "no torch of" in done.stderr
    assert "it has no torch" in done.stderr
    assert machine.pip.endswith("-e .")
    machine.calls.unlink()
    assert machine.setup().returncode == 0
    assert machine.pip.endswith("-e .[dev,train]")
    assert machine.constraint("torch") == [
        line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")
    ]
    assert not (machine.clone / ".venv/site/machine-torch.pth").exists()


def test_a_torch_that_was_installed_here_stays(machine: Machine) -> None:
    (machine.clone / ".venv/site/torch").mkdir(parents=True)
    done = machine.setup(TORCH="2.11.0")
    assert done.returncode == 0, done.stderr
    assert "a torch of its own" in done.stderr
    assert machine.constraint("torch") != ["torch==2.11.0"]


def test_what_is_missing_is_said_with_the_command_that_gets_it(tmp_path: Path) -> None:
    old = Machine(tmp_path / "old").setup(OLD="1")
    assert (old.returncode, old.stderr.splitlines()[-1]) == (3, "apt-get install -y python3 python3-venv")
    bare = Machine(tmp_path / "bare", ("python3", "rg")).setup()
    assert bare.returncode == 3
    assert bare.stderr.splitlines()[-1] == "sudo apt-get install -y bubblewrap"
    offline = Machine(tmp_path / "offline").setup("base", PIP_FAILS="1")
    assert (offline.returncode, offline.stderr.splitlines()[-1]) == (3, "make install")


def site_with_torch(place: Path, version: str) -> Path:
    """Packages as pip lays them out: torch with a CUDA library, which is itself made of two, and another package."""
    packages = {
        "torch": (version, ["torch", "torchgen"], ["nvidia-blas-cu13; platform_system == 'Linux'", "sympy>=1.13"]),
        "nvidia-blas-cu13": ("1.0", ["nvidia"], ["nvidia-base"]),
        "nvidia-base": ("1.0", ["nvidia"], []),
        "sympy": ("1.14", ["sympy"], []),
    }
    for name, (number, modules, needs) in packages.items():
        about = place / f"{name.replace('-', '_')}-{number}.dist-info"
        about.mkdir(parents=True)
        fields = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {number}"]
        fields += [f"Requires-Dist: {need}" for need in needs]
        (about / "METADATA").write_text("\n".join(fields) + "\n")
        files = [f"{about.name}/METADATA", "../../bin/tool", *(f"{module}/part.py" for module in modules)]
        (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        for module in modules:
            (place / module).mkdir(exist_ok=True)
            (place / module / "part.py").touch()
    return place


def machine_torch(site: Path, links: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", str(ROOT / "scripts/machine_torch.py"), str(links)]
    env = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_only_what_belongs_to_torch_is_linked(tmp_path: Path) -> None:
    site = site_with_torch(tmp_path / "site", "2.11.0+cu130")
    done = machine_torch(site, tmp_path / "links")
    assert (done.returncode, done.stdout) == (0, "2.11.0+cu130\n"), done.stderr
    linked = {path.name: path.resolve() for path in (tmp_path / "links").iterdir()}
    assert {"torch", "torchgen", "nvidia", "torch-2.11.0+cu130.dist-info"} <= set(linked)
    assert "sympy" not in linked
    assert linked["torch"] == site / "torch"


@pytest.mark.parametrize(("version", "says"), [("2.10.0", "2.11 to 2.13 are supported"), ("2.14.0", "2.14.0")])
def test_a_torch_that_is_not_supported_is_left_alone(tmp_path: Path, version: str, says: str) -> None:
    done = machine_torch(site_with_torch(tmp_path / "site", version), tmp_path / "links")
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "links").exists()
