// A line chart as SVG: several lines, marks at some x, and the figures under the pointer.

import { element, figure, shape } from "./elements.js";

const COLOURS = ["#0b6e99", "#c4452d", "#4c8c4a", "#8a5ba6", "#b8860b", "#5f6b76", "#2aa198"];
const WIDTH = 520, HEIGHT = 230, LEFT = 58, RIGHT = 12, TOP = 14, BOTTOM = 34;

// `lines` are {name, points: [[x, y], ...]}, `marks` are {x, name}. `range` fixes the y axis.
export function lineChart({ title, lines, marks = [], range = null, xLabel = "update" }) {
  const drawn = lines.filter((line) => line.points.length > 0);
  const xs = drawn.flatMap((line) => line.points.map(([x]) => x));
  const ys = drawn.flatMap((line) => line.points.map(([, y]) => y));
  const xRange = [least(xs, 0), most(xs, 1)];
  const yRange = range ?? [least(ys, 0), most(ys, 1)];
  const x = scale(xRange, LEFT, WIDTH - RIGHT), y = scale(yRange, HEIGHT - BOTTOM, TOP);
  const last = drawn.map((line) => `${line.name} ${figure(line.points.at(-1)[1])}`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}; last: ${last}` });
  for (const value of ticks(yRange)) {
    svg.append(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }));
    svg.append(shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, figure(value, 3)));
  }
  for (const value of ticks(xRange)) {
    svg.append(shape("text", { x: x(value), y: HEIGHT - 18, "text-anchor": "middle" }, figure(value, 3)));
  }
  svg.append(shape("text", { x: WIDTH / 2, y: HEIGHT - 3, "text-anchor": "middle", class: "axis" }, xLabel));
  for (const mark of marks.filter((mark) => mark.x >= xRange[0] && mark.x <= xRange[1])) {
    const line = shape("line", { x1: x(mark.x), x2: x(mark.x), y1: TOP, y2: HEIGHT - BOTTOM, class: "alarm" });
    line.append(shape("title", {}, mark.name));
    svg.append(line);
  }
  drawn.forEach((line, number) => drawLine(svg, line, x, y, COLOURS[number % COLOURS.length]));
  return element("figure", { class: "chart" }, element("figcaption", {}, title), svg, legend(svg, drawn, marks, xRange));
}

function drawLine(svg, line, x, y, colour) {
  const points = line.points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  svg.append(shape("polyline", { points, fill: "none", stroke: colour, "stroke-width": 1.8 }));
  if (line.points.length === 1) {
    svg.append(shape("circle", { cx: x(line.points[0][0]), cy: y(line.points[0][1]), r: 3, fill: colour }));
  }
}

// The names of the lines with their last values, or with those under the pointer.
function legend(svg, lines, marks, xRange) {
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
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    show(xRange[0] + ((at - LEFT) / (WIDTH - LEFT - RIGHT)) * (xRange[1] - xRange[0]));
  });
  svg.addEventListener("pointerleave", () => show(null));
  show(null);
  return place;
}

function nearest(points, wanted) {
  return points.reduce((best, point) => (Math.abs(point[0] - wanted) < Math.abs(best[0] - wanted) ? point : best));
}

function scale([low, high], from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function ticks([low, high]) {
  if (!(high > low)) return [low];
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  const values = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) values.push(count * step + 0); // no -0
  return values;
}

function least(values, otherwise) {
  return values.reduce((low, value) => Math.min(low, value), values.length ? Infinity : otherwise);
}

function most(values, otherwise) {
  return values.reduce((high, value) => Math.max(high, value), values.length ? -Infinity : otherwise);
}
