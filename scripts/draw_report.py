"""Photograph a report to docs/report.png, the picture in the README, with whatever Chromium this machine has.

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
    chosen = parser.parse_args()
    if not chosen.report.is_file():
        print(f"{chosen.report}: no such report; make one with: gametape demo", file=sys.stderr)
        return 2
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print("no Chromium here; type: apt-get install -y --no-install-recommends chromium", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as profile:
        words = [
            *(browser, "--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"),
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={chosen.out.absolute()}",
        ]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []  # its own sandbox refuses root
        words += ["--blink-settings=preferredColorScheme=0"] if chosen.dark else []
        done = subprocess.run([*words, chosen.report.absolute().as_uri()], capture_output=True, text=True, check=False)
    if done.returncode or not chosen.out.is_file():
        print(f"{browser} took no picture: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return 1
    print(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
