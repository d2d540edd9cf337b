// A line chart as SVG: several lines, bands around them, marks at some x, and the figures under the pointer.

import { element, figure, shape } from "./elements.js";

const COLOURS = ["#1b7fae", "#d2553b", "#4f9a4d", "#9467bd", "#c08a10", "#7a8794", "#2aa198"];
const WIDTH = 420, HEIGHT = 220, LEFT = 46, RIGHT = 12, TOP = 12, BOTTOM = 34;
const MOST_POINTS = 2 * WIDTH;

// `lines` are {name, points: [[x, y], ...], band: [[x, low, high], ...]}, `marks` are {x, name}. `range` fixes the y axis.
export function lineChart({ title, lines, marks = [], range = null, xLabel = "update" }) {
  const drawn = lines.filter((line) => line.points.length > 0);
  const xRange = extent(drawn, 0, [0, 1]), yRange = range ?? extent(drawn, 1, [0, 1]);
  const x = scale(xRange, LEFT, WIDTH - RIGHT), y = scale(yRange, HEIGHT - BOTTOM, TOP);
  const last = drawn.map((line) => `${line.name} ${figure(line.points.at(-1)[1])}`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}; last: ${last}` });
  for (const value of ticks(yRange, 5)) {
    svg.append(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }));
    svg.append(shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", "font-size": 12 }, figure(value, 3)));
  }
  for (const value of ticks(xRange, 5)) {
    svg.append(shape("text", { x: x(value), y: HEIGHT - 17, "text-anchor": "middle", "font-size": 12 }, figure(value, 3)));
  }
  svg.append(shape("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 2, "text-anchor": "middle", "font-size": 12 }, xLabel));
  for (const mark of marks.filter((mark) => mark.x >= xRange[0] && mark.x <= xRange[1])) svg.append(alarmLine(x(mark.x), mark.name));
  drawn.forEach((line, number) => drawLine(svg, line, x, y, COLOURS[number % COLOURS.length]));
  const cursor = shape("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor", visibility: "hidden" });
  svg.append(cursor);
  return element("figure", { class: "chart" }, element("figcaption", {}, title), svg, legend(svg, drawn, marks, xRange, cursor));
}

function alarmLine(x, name) {
  const place = shape("g", {});
  place.append(shape("title", {}, `alarm: ${name}`));
  place.append(shape("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: "alarm" }));
  place.append(shape("path", { d: `M${x - 4} ${TOP - 7}h8l-4 7z`, class: "alarm-head" }));
  return place;
}

function drawLine(svg, line, x, y, colour) {
  if (line.band?.length > 1) {
    const edge = (rows, at) => rows.map((row) => `${x(row[0]).toFixed(1)},${Math.max(TOP, y(row[at])).toFixed(1)}`);
    const around = [...edge(line.band, 2), ...edge([...line.band].reverse(), 1)].join(" ");
    svg.append(shape("polygon", { points: around, fill: colour, "fill-opacity": 0.16 }));
  }
  for (const [at, low, high] of line.band?.length === 1 ? line.band : []) { // an area needs two
    svg.append(shape("line", { x1: x(at), x2: x(at), y1: y(low), y2: Math.max(TOP, y(high)), stroke: colour, "stroke-width": 2, "stroke-opacity": 0.5 }));
  }
  const points = thinned(line.points).map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  svg.append(shape("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" }));
  const [at, value] = line.points.at(-1);
  svg.append(shape("circle", { cx: x(at), cy: y(value), r: 3, fill: colour }));
}

// Of more points than can be told apart, the lowest and the highest of each stretch.
function thinned(points) {
  if (points.length <= MOST_POINTS) return points;
  const kept = [], length = Math.ceil(points.length / (MOST_POINTS / 2));
  for (let first = 0; first < points.length; first += length) {
    const part = points.slice(first, first + length);
    const low = part.reduce((best, point) => (point[1] < best[1] ? point : best));
    const high = part.reduce((best, point) => (point[1] > best[1] ? point : best));
    kept.push(...(low[0] < high[0] ? [low, high] : [high, low]));
  }
  return kept;
}

// The names of the lines with their last values, or with those under the pointer.
function legend(svg, lines, marks, xRange, cursor) {
  const place = element("div", { class: "legend" });
  const show = (wanted) => {
    const words = lines.map((line, number) => {
      const [at, value] = wanted === null ? line.points.at(-1) : nearest(line.points, wanted);
      const dot = element("i", {});
      dot.style.backgroundColor = COLOURS[number % COLOURS.length];
      return element("span", {}, dot, `${line.name} ${figure(value)}${wanted === null ? "" : ` at ${figure(at)}`}`);
    });
    const near = wanted === null ? [] : marks.filter((mark) => Math.abs(mark.x - wanted) <= (xRange[1] - xRange[0]) / 60);
    place.replaceChildren(...words, ...near.map((mark) => element("span", { class: "bad" }, `alarm: ${mark.name}`)));
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.min(WIDTH - RIGHT, Math.max(LEFT, ((event.clientX - box.left) / box.width) * WIDTH));
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    show(xRange[0] + ((at - LEFT) / (WIDTH - LEFT - RIGHT)) * (xRange[1] - xRange[0]));
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); show(null); });
  show(null);
  return place;
}

// Points are in the order of their x but where a run was resumed; then the last one before `wanted` is near enough.
function nearest(points, wanted) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < wanted) low = middle + 1;
    else high = middle;
  }
  const before = points[Math.max(0, low - 1)];
  return Math.abs(before[0] - wanted) < Math.abs(points[low][0] - wanted) ? before : points[low];
}

function scale([low, high], from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function ticks([low, high], most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  const values = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) values.push(count * step + 0); // no -0
  return values;
}

function extent(lines, part, otherwise) {
  let low = Infinity, high = -Infinity;
  for (const line of lines) for (const point of line.points) { low = Math.min(low, point[part]); high = Math.max(high, point[part]); }
  return high >= low ? [low, high] : otherwise;
}
