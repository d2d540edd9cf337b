"""Line charts as SVG: readable in light and dark pages, without a script and without a library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

_COLOURS = ("#0b6e99", "#c4452d", "#4c8c4a", "#8a5ba6", "#b8860b", "#5f6b76")
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 20, 54, 46
_LETTER = 7.2
"""The approximate width of a letter in the legend, in pixels."""
_MOST_DOTS = 30
"""Points are marked where there are at most so many."""


@dataclass(frozen=True)
class ChartSeries:
    """One line, with a band around it where it is the mean of several runs."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def line_chart(
    title: str,
    series: Sequence[ChartSeries],
    x_label: str,
    y_label: str,
    size: tuple[int, int] = (640, 340),
    y_range: tuple[float, float] | None = (0.0, 1.0),
) -> str:
    """A whole `<svg>`. Text takes the colour of the page around it."""
    width, height = size
    x_max = max((x for line in series for x in line.xs), default=1.0) or 1.0
    low, high = y_range or _range(series)
    scale = _Scale(width, height, x_max, low, high)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" '
        'fill="currentColor">',
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>',
        *_axes(scale, x_label, y_label),
    ]
    for number, line in enumerate(series):
        parts += _line(scale, line, _COLOURS[number % len(_COLOURS)])
    parts += _legend([line.name for line in series])
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True)
class _Scale:
    width: int
    height: int
    x_max: float
    low: float
    high: float

    def x(self, value: float) -> float:
        return round(_LEFT + value / self.x_max * (self.width - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM), 1)


def _range(series: Sequence[ChartSeries]) -> tuple[float, float]:
    values = [y for line in series for y in (*line.ys, *line.low, *line.high)]
    return (min(values, default=0.0), max(values, default=1.0))


def _axes(scale: _Scale, x_label: str, y_label: str) -> list[str]:
    parts = []
    right, bottom = scale.width - _RIGHT, scale.height - _BOTTOM + 18
    for value in _ticks(scale.low, scale.high):
        y = scale.y(value)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity="0.15"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{_number(value)}</text>')
    for value in _ticks(0.0, scale.x_max):
        parts.append(f'<text x="{scale.x(value)}" y="{bottom}" text-anchor="middle">{_number(value)}</text>')
    middle, bottom = (_LEFT + scale.width - _RIGHT) / 2, scale.height - 8
    parts.append(f'<text x="{middle}" y="{bottom}" text-anchor="middle">{escape(x_label)}</text>')
    half = scale.height / 2
    parts.append(
        f'<text x="14" y="{half}" transform="rotate(-90 14 {half})" text-anchor="middle">{escape(y_label)}</text>'
    )
    return parts


def _line(scale: _Scale, series: ChartSeries, colour: str) -> list[str]:
    parts = []
    if series.low and series.high:
        upper = [f"{scale.x(x)},{scale.y(y)}" for x, y in zip(series.xs, series.high, strict=True)]
        lower = [f"{scale.x(x)},{scale.y(y)}" for x, y in zip(series.xs, series.low, strict=True)]
        points = " ".join([*upper, *reversed(lower)])
        parts.append(f'<polygon points="{points}" fill="{colour}" fill-opacity="0.15" stroke="none"/>')
    points = " ".join(f"{scale.x(x)},{scale.y(y)}" for x, y in zip(series.xs, series.ys, strict=True))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    if len(series.xs) <= _MOST_DOTS:
        dots = zip(series.xs, series.ys, strict=True)
        parts += [f'<circle cx="{scale.x(x)}" cy="{scale.y(y)}" r="2.5" fill="{colour}"/>' for x, y in dots]
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Round values between two bounds, at most seven of them."""
    if high <= low:
        return [low]
    rough = (high - low) / 6
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [count * step for count in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _legend(names: Sequence[str]) -> list[str]:
    """The names of the lines, in a row above the chart."""
    parts, x, y = [], float(_LEFT), _TOP - 14
    for number, name in enumerate(names):
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 24}" y="{y}">{escape(name)}</text>')
        x = round(x + 40 + _LETTER * len(name), 1)
    return parts


def _number(value: float) -> str:
    if abs(value) >= 10000:
        return f"{value / 1000:.3g}k"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
