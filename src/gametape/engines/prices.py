"""The prices of tokens. They come from the user (a TOML file, or the model's name); none are built in, for they change.

```toml
["some-model"]
input = 1.0    # dollars per million tokens read
output = 3.0   # dollars per million tokens written
cached = 0.1   # dollars per million tokens that the server had already read; as `input` where it is missing
written = 1.25 # dollars per million tokens that the server kept for later turns; as `input` where it is missing
```
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens. An unknown price counts as 0 and has `known` false."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    known: bool = True
    written: float | None = None

    def cost(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
    ) -> float:
        """Dollars for a reply; `cached_tokens` and `written_tokens` are parts of `prompt_tokens`."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        read = (prompt_tokens - cached_tokens - written_tokens) * self.input
        return (read + cached_tokens * cached + written_tokens * written + completion_tokens * self.output) / 1e6


FREE = Price()
UNKNOWN_PRICE = Price(known=False)


def parse_price(table: Mapping[str, Any], where: str) -> Price:
    """Read a table with `input`, `output` and optionally `cached` and `written`."""
    unknown = set(table) - {"input", "output", "cached", "written"}
    if unknown:
        raise BadInput(f"{where}: a price has input, output, cached and written, not {', '.join(sorted(unknown))}")
    if not {"input", "output"} <= set(table):
        raise BadInput(f"{where}: a price needs both input and output, in dollars per million tokens")
    dollars = {name: _dollars(value, f"{where}, {name}") for name, value in table.items()}
    return Price(dollars["input"], dollars["output"], dollars.get("cached"), written=dollars.get("written"))


def read_prices(file: Path) -> dict[str, Price]:
    """The prices in a file, by model; none where there is no file."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file}: {error}") from error
    return {
        model: parse_price(_table(value, f"{file}, {model}"), f"{file}, {model}") for model, value in document.items()
    }


def find_price(home: Path | None, *models: str) -> Price | None:
    """The price of a model in `HOME/prices.toml`, under the first of these names that is there."""
    prices = read_prices(home / "prices.toml") if home else {}
    return next((prices[model] for model in models if model in prices), None)


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{where}: expected a table with input and output")
    return value


def _dollars(value: object, where: str) -> float:
    try:
        dollars = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
    except ValueError:
        dollars = math.nan
    if not math.isfinite(dollars) or dollars < 0:
        raise BadInput(f"{where}: expected dollars per million tokens, not {value!r}")
    return dollars
