"""Which device and dtype are used, and how what is not there is refused."""

import pytest

torch = pytest.importorskip("torch")

from gametape.core.errors import BadInput, MissingDependency  # noqa: E402
from gametape.engines.torch import cpu_dtype  # noqa: E402
from gametape.engines.torch.cpu_dtype import Bfloat16Support  # noqa: E402
from gametape.engines.torch.device import choose_placement, placement_from_environment, why_placement  # noqa: E402


@pytest.fixture
def machine(monkeypatch):
    """A machine with a GPU or without one, whose CPU computes in bfloat16 or does not."""

    def make(gpu, bfloat16=True, build="13.0"):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(torch.version, "cuda", build)
        monkeypatch.setattr(cpu_dtype, "probe_bfloat16", lambda: Bfloat16Support(works=bfloat16, speedup=2.0))
        for name in ("GAMETAPE_DEVICE", "GAMETAPE_DTYPE", "GAMETAPE_CPU_DTYPE"):
            monkeypatch.delenv(name, raising=False)
        return monkeypatch

    return make


@pytest.mark.parametrize(
    ("gpu", "device", "dtype", "expected"),
    [
        (True, "auto", "auto", "cuda in bfloat16"),
        (True, "cpu", "auto", "cpu in float32"),
        (True, "cuda", "float32", "cuda in float32"),
        (False, "auto", "auto", "cpu in float32"),
        (False, "cpu", "bfloat16", "cpu in bfloat16"),
    ],
)
def test_what_is_there_is_used(machine, gpu, device, dtype, expected):
    machine(gpu)
    assert str(choose_placement(device, dtype)) == expected


@pytest.mark.parametrize(
    ("build", "reason"), [(None, "is a build for CPUs; install one for CUDA"), ("13.0", "finds no GPU")]
)
def test_a_gpu_that_is_not_there_is_refused_in_one_line(machine, build, reason):
    machine(False, build=build)
    with pytest.raises(MissingDependency, match=f"^device = cuda: torch .* {reason}$"):
        choose_placement("cuda")


def test_a_cpu_that_does_not_compute_in_bfloat16_is_not_asked_to(machine):
    machine(False, bfloat16=False)
    with pytest.raises(MissingDependency, match="this CPU does not compute in it; take float32"):
        choose_placement("cpu", "bfloat16")


def test_models_elsewhere_go_by_the_environment(machine):
    patch = machine(True)
    assert str(placement_from_environment()) == "cuda in bfloat16"
    patch.setenv("GAMETAPE_DEVICE", "cpu")
    assert str(placement_from_environment()) == "cpu in float32"
    patch.setenv("GAMETAPE_CPU_DTYPE", "auto")
    assert str(placement_from_environment()) == "cpu in bfloat16"
    patch.setenv("GAMETAPE_DTYPE", "float32")
    assert str(placement_from_environment()) == "cpu in float32"
    patch.setenv("GAMETAPE_DEVICE", "tpu")
    with pytest.raises(BadInput, match="GAMETAPE_DEVICE is auto, cpu or cuda, not tpu"):
        placement_from_environment()


@pytest.mark.parametrize(
    ("gpu", "asked", "reason"),
    [
        (True, {}, "finds NVIDIA X and 1 more; bfloat16 is the default of a GPU"),
        (False, {}, "finds no GPU; float32 is the default of a CPU"),
        (True, {"GAMETAPE_DEVICE": "cpu"}, "GAMETAPE_DEVICE asks for it; float32 is the default of a CPU"),
        (True, {"GAMETAPE_DTYPE": "float32"}, "finds NVIDIA X and 1 more; GAMETAPE_DTYPE asks for float32"),
    ],
)
def test_it_says_why(machine, gpu, asked, reason):
    patch = machine(gpu)
    patch.setattr(torch.cuda, "device_count", lambda: 2)
    patch.setattr(torch.cuda, "get_device_name", lambda _number: "NVIDIA X")
    for name, value in asked.items():
        patch.setenv(name, value)
    assert why_placement(placement_from_environment()).endswith(reason)
