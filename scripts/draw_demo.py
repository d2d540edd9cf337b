"""Run the sandbox demo and draw its table to docs/demo.svg, a picture in the README."""

import io
import re
from pathlib import Path

from rich.console import Console

from gametape.demo.sandbox_programs import programs_table, run_programs

console = Console(record=True, width=110, file=io.StringIO())
console.print(programs_table(run_programs()))
picture = console.export_svg(title="gametape demo --sandbox")
without_remote_fonts = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
(Path(__file__).parents[1] / "docs" / "demo.svg").write_text(without_remote_fonts)
