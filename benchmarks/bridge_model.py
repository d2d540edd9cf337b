"""A smaller model made from SmolLM2-135M, as a bridge between tiny policies and it: its words and some of its layers.

    python benchmarks/bridge_model.py OUT [--home DIR] [--layers 0 1 2 27 28 29]

What is cut out of a network says nothing sensible any more; a warm start teaches it anew, which needs far less than
beginning from nothing, since words keep their places. With six layers it has 49 million parameters.
"""

import argparse
import json
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file

from gametape.record.home import home_directory
from gametape.train.early_checks import find_model

LAYERS = (0, 1, 2, 27, 28, 29)
_CALMER = 0.3
"""A factor on the last norm: what is left of the network would be sure of nonsense, and be taught slowly."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--layers", type=int, nargs="+", default=list(LAYERS))
    chosen = parser.parse_args()
    count = cut_model(find_model("smollm2", home_directory(chosen.home)), chosen.out, chosen.layers)
    print(f"{chosen.out}: {count / 1e6:.1f} million parameters")


def cut_model(source: Path, out: Path, layers: list[int]) -> int:
    """A model directory with these layers alone; returns how many parameters it has."""
    tensors = load_file(source / "model.safetensors")
    kept = {}
    for name, tensor in tensors.items():
        parts = name.split(".")
        if "layers" not in parts:
            kept[name] = _CALMER * tensor if name == "model.norm.weight" else tensor
        elif (old := int(parts[2])) in layers:
            kept[".".join([*parts[:2], str(layers.index(old)), *parts[3:]])] = tensor
    out.mkdir(parents=True)
    save_file(kept, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    (out / "config.json").write_text(json.dumps({**config, "num_hidden_layers": len(layers)}, indent=1) + "\n")
    for file in source.iterdir():
        if file.name not in ("model.safetensors", "config.json"):
            shutil.copy(file, out / file.name)
    return sum(tensor.numel() for tensor in kept.values())


if __name__ == "__main__":
    main()
