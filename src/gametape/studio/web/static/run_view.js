// The curves of one run, or of several beside each other, and how they go on.

import { lineChart } from "./chart.js";
import { element, showFailure } from "./elements.js";
import { ask, follow } from "./source.js";

const TIMES = ["decode", "tools", "prepare", "verify", "coach", "learn", "idle"];

// What is drawn: of which rows, which values, and against what. Charts without a value are left out.
const CHARTS = [
  { title: "Held-out success, with its 95 % interval", of: "evals", values: ["success"], range: [0, 1] },
  { title: "Held-out success by episodes", of: "evals", values: ["success"], against: "episodes_so_far", range: [0, 1] },
  { title: "Turns that go right: load-bearing, others", of: "evals", values: ["load_bearing", "ordinary"], range: [0, 1] },
  { title: "Load-bearing turns that go right after a hint", of: "evals", values: ["hinted"], range: [0, 1] },
  { title: "Hint gain: more of them right after a hint", of: "evals", values: ["hint_gain"] },
  { title: "Mean reward", of: "updates", values: ["reward"] },
  { title: "Share of rollouts that pass", of: "updates", values: ["pass_rate"], range: [0, 1] },
  { title: "Entropy, nats a token", of: "updates", values: ["entropy"] },
  { title: "KL to the start, nats a token", of: "updates", values: ["kl_to_start"] },
  { title: "Length, tokens a turn", of: "updates", values: ["turn_tokens"] },
  { title: "Targets used", of: "updates", values: ["targets"] },
  { title: "Loss from targets", of: "updates", values: ["ttf"] },
  { title: "Mismatch of sampler and trainer, nats", of: "updates", values: ["mismatch"] },
  { title: "Tokens a second", of: "updates", values: ["tokens_per_second"] },
  { title: "What the time went into, shares of the clock", of: "updates", values: TIMES.map((name) => `time_${name}`) },
  { title: "Loss", of: "updates", values: ["loss"] },
  { title: "Norm of the gradient", of: "updates", values: ["gradient"] },
  { title: "Staleness, versions", of: "updates", values: ["staleness"] },
];
const MILLISECONDS_BETWEEN_DRAWINGS = 1000;

export async function mountRun(place) {
  const runs = JSON.parse(place.dataset.runs);
  const state = new Map();
  let waiting = false;
  const draw = () => drawCharts(place, runs, state);
  const drawSoon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; draw(); }, MILLISECONDS_BETWEEN_DRAWINGS);
  };
  const load = async (run) => {
    const curves = await ask("series", { run });
    state.set(run, curves);
    draw();
    follow(run, curves.offset, {
      rows: ({ rows }) => { addRows(curves, rows); drawSoon(); },
      anew: () => { load(run).catch((error) => showFailure(place, error)); return false; },
      gone: () => {
        place.prepend(element("p", { class: "failure", role: "alert" }, `${run}: was deleted meanwhile`));
        return false;
      },
    });
  };
  try {
    for (const run of runs) await load(run);
  } catch (error) {
    showFailure(place, error);
  }
}

function addRows(curves, rows) {
  for (const row of rows) curves[{ update: "updates", eval: "evals", alarm: "alarms" }[row.kind]].push(row);
}

function drawCharts(place, runs, state) {
  const charts = CHARTS.map((chart) => drawChart(chart, runs, state)).filter((chart) => chart !== null);
  const note = element("p", { class: "dim" }, "There are no figures yet: the first come with the first evaluation or update.");
  place.replaceChildren(...(charts.length ? charts : [note]));
  place.setAttribute("aria-busy", "false");
}

function drawChart({ title, of, values, against = "step", range = null }, runs, state) {
  const lines = [], marks = [];
  for (const run of runs) {
    const curves = state.get(run);
    if (!curves) continue;
    for (const value of values) {
      const points = curves[of].filter((row) => typeof row[value] === "number" && typeof row[against] === "number");
      const parts = [runs.length > 1 ? run : "", values.length > 1 || runs.length === 1 ? value.replace("time_", "") : ""];
      lines.push({
        name: parts.filter(Boolean).join(" "), points: points.map((row) => [row[against], row[value]]),
        band: points.filter((row) => typeof row[`${value}_low`] === "number").map((row) => [row[against], row[`${value}_low`], row[`${value}_high`]]),
      });
    }
    if (against === "step") {
      const named = (alarm) => ({ x: alarm.step, name: runs.length > 1 ? `${alarm.name} in ${run}` : alarm.name });
      marks.push(...curves.alarms.filter((alarm) => typeof alarm.step === "number").map(named));
    }
  }
  const xLabel = against === "step" ? "update" : "episodes";
  return lines.some((line) => line.points.length) ? lineChart({ title, lines, marks, range, xLabel }) : null;
}
