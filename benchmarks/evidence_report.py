"""Tables and charts of docs/evidence.md, redrawn from the lines that evidence.py wrote.

    python benchmarks/evidence_report.py [--results FILE] [--docs DIR] [--check]

What stands between `<!-- results -->` and `<!-- end of results -->` in docs/evidence.md is replaced, and a chart for
each regime is written beside it. With --check nothing is written, and the exit code is 1 where the page differs.

Success is that of the last evaluation. A cell has the interquartile mean over seeds with its bootstrap interval; a
comparison is between runs of one seed, which have the same prompts, with the p of all patterns of signs. Runs that the
time cut off are listed, and are in no mean.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from evidence import CURVE, RESULTS, last_lines
from gametape.studio.line_chart import ChartSeries, line_chart
from paired_runs import bootstrap_interval, interquartile_mean, sign_flip_p

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
CLAIMED = (("sft", 35), ("rlvr", 68), ("ttf", 89))
"""Per cent of long tasks, claimed by a secondary article: compared with in every regime, and tuned to in none."""
Line = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    lines, page = last_lines(chosen.results), chosen.docs / "evidence.md"
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    drawn = f"{before}{BEGIN}\n{section(lines)}\n{END}{after}"
    if chosen.check:
        sys.exit(int(drawn != text))
    page.write_text(drawn)
    for regime in regimes_of(lines):
        (chosen.docs / f"evidence-{regime}.svg").write_text(chart(regime, done(lines, regime)))
    print(section(lines))


def section(lines: Sequence[Line]) -> str:
    if not any(line["kind"] == "cell" for line in lines):
        return "\nNo run of the grid has been made yet.\n"
    parts = [machines(lines), starts(lines)]
    for regime in regimes_of(lines):
        cells = done(lines, regime)
        parts += [
            f"### {regime}",
            table(cells),
            claim(cells),
            comparisons(cells),
            f"![{regime}](evidence-{regime}.svg)",
        ]
    cut = [line["run"] for line in lines if line.get("partial")]
    parts += [f"Cut off by time, and in no mean: {', '.join(cut)}."] if cut else []
    return "\n" + "\n\n".join(part for part in parts if part) + "\n"


def regimes_of(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line["regime"] for line in lines if line["kind"] == "cell" and not line.get("partial")))


def done(lines: Sequence[Line], regime: str) -> dict[str, list[Line]]:
    """By arm, the runs of one regime, in the order of seeds."""
    whole = [line for line in lines if line["kind"] == "cell" and line["regime"] == regime and not line.get("partial")]
    arms = dict.fromkeys(line["arm"] for line in whole)
    return {arm: sorted((one for one in whole if one["arm"] == arm), key=lambda one: one["seed"]) for arm in arms}


def machines(lines: Sequence[Line]) -> str:
    told = {f"{line.get('device', 'unknown')}, torch {line['machine']['torch']}" for line in lines if "device" in line}
    return f"Made on: {'; '.join(sorted(told))}."


def last_of(line: Line, name: str) -> float | None:
    """Of the last evaluation."""
    value: float | None = line["curve"][-1][CURVE.index(name)] if line["curve"] else None
    return value


def starts(lines: Sequence[Line]) -> str:
    """What the runs of each regime begin with: the gap between a hint and none, before any reward."""
    rows = ["| start of | success | at rules | with the hint | at other turns |", "|---|---:|---:|---:|---:|"]
    for regime in regimes_of(lines):
        first = [line["curve"][0] for cells in done(lines, regime).values() for line in cells if line["curve"]]
        names = ("success", "load_bearing", "hinted", "ordinary")
        columns = ([row[CURVE.index(name)] for row in first] for name in names)
        rows.append(f"| {regime} | {' | '.join(percent(column) for column in columns)} |")
    return "\n".join(rows)


def table(cells: Mapping[str, Sequence[Line]]) -> str:
    rows = [
        "| arm | seeds | success, IQM | 95 % | at rules | at other turns | with the hint | episodes | 10^12 operations "
        "| seconds |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for arm, runs in cells.items():
        success = [100 * run["success_after"] for run in runs]
        low, high = bootstrap_interval(success)
        turns = (percent([last_of(run, name) for run in runs]) for name in ("load_bearing", "ordinary", "hinted"))
        costs = (mean(run["episodes"] for run in runs), mean(run["flops"] for run in runs) / 1e12)
        shown = f"{costs[0]:,.0f} | {costs[1]:,.3g} | {mean(run['seconds'] for run in runs):,.0f}"
        iqm = f"{interquartile_mean(success):.1f} % | {low:.1f} to {high:.1f}"
        rows.append(f"| `{arm}` | {len(runs)} | {iqm} | {' | '.join(turns)} | {shown} |")
    return "\n".join(rows)


def claim(cells: Mapping[str, Sequence[Line]]) -> str:
    def own(arm: str) -> str:
        runs = cells.get(arm, ())
        return f"{100 * interquartile_mean([run['success_after'] for run in runs]):.0f}" if runs else "not run"

    said, here = " / ".join(str(share) for _, share in CLAIMED), " / ".join(own(arm) for arm, _ in CLAIMED)
    return f"Claimed for SFT / RLVR / TTF: {said}. Here: {here}."


def comparisons(cells: Mapping[str, Sequence[Line]]) -> str:
    """Of `ttf` with every other arm, seed by seed."""
    own = {run["seed"]: run["success_after"] for run in cells.get("ttf", ())}
    rows = ["| `ttf` against | pairs | points | 95 % | p |", "|---|---:|---:|---|---:|"]
    for arm, runs in cells.items():
        apart = [100 * (own[run["seed"]] - run["success_after"]) for run in runs if run["seed"] in own]
        if arm != "ttf" and apart:
            low, high = bootstrap_interval(apart, mean)
            shown = f"{mean(apart):+.1f} | {low:+.1f} to {high:+.1f} | {sign_flip_p(apart):.3f}"
            rows.append(f"| `{arm}` | {len(apart)} | {shown} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def percent(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * mean(known):.1f} %" if known else "-"


def chart(regime: str, cells: Mapping[str, Sequence[Line]]) -> str:
    """Success against operations: the mean over seeds at each look, between the lowest and the highest."""
    series = []
    for arm, runs in cells.items():
        looks = list(zip(*(run["curve"] for run in runs), strict=False))
        ys = [[row[CURVE.index("success")] for row in look] for look in looks]
        xs = [mean(row[CURVE.index("flops")] for row in look) / 1e12 for look in looks]
        series.append(ChartSeries(arm, xs, list(map(mean, ys)), list(map(min, ys)), list(map(max, ys))))
    return line_chart(f"Held-out success, {regime}", series, "10^12 operations", "success at temperature 1")


if __name__ == "__main__":
    main()
