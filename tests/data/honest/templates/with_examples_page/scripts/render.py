"""Render a template file: python scripts/render.py TEMPLATE VALUES.json"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from templates import render  # noqa: E402


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    print(render(Path(sys.argv[1]).read_text(), json.loads(Path(sys.argv[2]).read_text())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
