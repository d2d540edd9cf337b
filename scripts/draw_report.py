"""Take a screenshot of a report for the README, docs/report.png, with the Chromium of this machine.

python scripts/draw_report.py runs/demo/report.html [--out docs/report.png] [--dark]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
SIZE = (1180, 2560)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "report.png")
    parser.add_argument("--dark", action="store_true", help="as a page in dark colours")
    arguments = parser.parse_args()
    if not arguments.report.is_file():
        print(f"{arguments.report}: no such report; make one with: gametape demo", file=sys.stderr)
        return 2
    photograph(arguments.report, arguments.out, SIZE, arguments.dark)
    print(arguments.out)
    return 0


def photograph(page: Path, out: Path, size: tuple[int, int], dark: bool = False) -> None:
    """A picture of the top of a page. Exits where there is no browser, or where it takes none."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print("no Chromium here; type: apt-get install -y --no-install-recommends chromium", file=sys.stderr)
        sys.exit(3)
    with tempfile.TemporaryDirectory() as profile:
        words = [
            *(browser, "--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"),
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={out.absolute()}",
        ]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []  # its own sandbox refuses root
        words += ["--blink-settings=preferredColorScheme=0"] if dark else []
        done = subprocess.run([*words, page.absolute().as_uri()], capture_output=True, text=True, check=False)
    if done.returncode or not out.is_file():
        print(f"{browser} took no picture: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
