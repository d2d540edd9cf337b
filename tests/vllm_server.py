"""vLLM on the CPU, as a server of one directory of weights. `scripts/setup-vllm.sh` makes the venv this looks for."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gametape"
DATA = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"
VENV = Path(os.environ.get("GAMETAPE_VLLM") or CACHE / "vllm")
HOME = Path(os.environ.get("GAMETAPE_HOME") or DATA)
SMOLLM2 = Path(os.environ.get("GAMETAPE_SMOLLM2") or HOME / "models" / "smollm2")
START_SECONDS = 420


def require_vllm() -> None:
    """Skip the test where the server or the weights are not there."""
    if not (VENV / ".ready").exists():
        pytest.skip(f"no vLLM at {VENV}: run scripts/setup-vllm.sh")
    if not (SMOLLM2 / "model.safetensors").exists():
        pytest.skip(f"no weights at {SMOLLM2}: run gametape models fetch smollm2")


@contextmanager
def serve(weights: Path, log: Path, name: str = "smollm2") -> Iterator[str]:
    """The URL of a server of these weights, which is called `name` there."""
    port = _free_port()
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_HOST_IP": "127.0.0.1"}
    small = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    command = f"""{VENV}/bin/python -m vllm.entrypoints.openai.api_server --model {weights}
        --served-model-name {name} --host 127.0.0.1 --port {port} --dtype float32 --enforce-eager
        --max-model-len 2048 --max-num-seqs 4 --logprobs-mode processed_logprobs --enable-prompt-tokens-details"""
    with log.open("wb") as output:
        server = subprocess.Popen(command.split(), stdout=output, stderr=output, env=os.environ | quiet | small)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(url, trust_env=False, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(1)
    pytest.fail(f"vLLM did not start:\n{log.read_text(errors='replace')[-3000:]}")
