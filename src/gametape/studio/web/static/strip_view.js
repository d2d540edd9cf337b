// A whole rollout in one strip: a column for each step, or for several where there are more steps than pixels.

const MARKS = { flag: "#b93a22", target: "#0b7fb0", failed: "#d08a00", event: "#8a5ba6" };
const HOT = "214 96 33", UP = "32 138 76", DOWN = "196 48 60";
const ORDER = ["", "event", "failed", "target", "flag"];

export function drawStrip(canvas, facts, { value, signed, marked, agent, current }) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.round(46 * ratio);
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context || !facts.length) return;
  const columns = Math.min(width, facts.length), lane = Math.round(height * 0.3);
  for (let column = 0; column < columns; column++) {
    const first = Math.floor((column * facts.length) / columns);
    const rows = facts.slice(first, Math.max(first + 1, Math.floor(((column + 1) * facts.length) / columns)));
    const left = Math.floor((column * width) / columns), wide = Math.max(1, Math.ceil(width / columns) - (columns < width / 4 ? 1 : 0));
    const strongest = rows.reduce((most, row, place) => Math.abs(value(first + place)) > Math.abs(most) ? value(first + place) : most, 0);
    const strength = (0.12 + 0.85 * Math.abs(strongest)).toFixed(3);
    context.fillStyle = rows.some(agent) ? `rgb(${signed && strongest ? (strongest > 0 ? UP : DOWN) : HOT} / ${strength})` : "rgb(128 128 128 / .25)";
    context.fillRect(left, lane, wide, height - lane);
    const mark = rows.map(marked).reduce((worst, kind) => (ORDER.indexOf(kind) > ORDER.indexOf(worst) ? kind : worst), "");
    if (mark) {
      context.fillStyle = MARKS[mark];
      context.fillRect(left, 0, Math.max(2, wide), lane);
    }
  }
  context.strokeStyle = getComputedStyle(canvas).color;
  context.lineWidth = 2 * ratio;
  context.strokeRect((current * width) / facts.length, 1, Math.max(3, width / facts.length), height - 2);
}
