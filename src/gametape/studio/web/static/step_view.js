// One row of the tape: a step with its message, calls, results, marks, tokens and targets.

import { element, figure } from "./elements.js";
import { drawForks, drawTarget, drawTokens } from "./token_view.js";

const SHORT_CHARACTERS = 600, SHORT_LINES = 8;

export function drawStep(step, tape, channel, address) {
  const agent = step.source === "agent";
  const name = agent ? `turn ${step.turn}` : step.source;
  const took = [];
  if (step.prompt_tokens || step.completion_tokens) took.push(`${figure(step.prompt_tokens)} + ${figure(step.completion_tokens)} tokens`);
  if (step.cost_usd) took.push(`$${figure(step.cost_usd)}`);
  const versions = [...new Set(step.tokens?.version ?? [])];
  if (versions.length) took.push(`weights ${versions.join(", ")}`);
  const row = element("article", {
    class: `step ${agent ? "agent" : "other"}${step.targets.length ? " has-target" : ""}`, tabindex: -1,
    "aria-label": `step ${step.step}, ${name}`,
  });
  row.append(element("p", { class: "who" }, element("a", { href: address(step.step) }, name), " ",
    element("span", { class: "dim" }, [`step ${step.step}`, ...took].join(", "))));
  if (step.reasoning) row.append(folded(step.reasoning, "reasoning", true));
  if (step.text.trim()) row.append(agent ? element("div", { class: "message" }, step.text.trim()) : folded(step.text));
  if (step.tokens) row.append(drawTokens(step, tape, channel));
  const answered = new Set();
  for (const call of step.calls) {
    row.append(drawCall(call));
    step.results.forEach((result, at) => {
      if (result.call !== null && result.call === call.id) { answered.add(at); row.append(drawResult(result)); }
    });
  }
  step.results.forEach((result, at) => { if (!answered.has(at)) row.append(drawResult(result)); });
  for (const mark of step.marks) row.append(drawMark(mark));
  for (const target of step.targets) row.append(drawTarget(target));
  if (step.forks) row.append(drawForks(step.forks));
  return row;
}

export function drawMark(mark) {
  return element("p", { class: `mark ${mark.level}` }, element("b", {}, mark.kind), ` ${mark.text}`);
}

function drawCall(call) {
  const place = element("div", { class: "call" }, element("b", {}, call.name));
  const given = call.arguments !== null && typeof call.arguments === "object" && !Array.isArray(call.arguments) ? call.arguments : { arguments: call.arguments };
  const isEdit = typeof given.old === "string" && typeof given.new === "string";
  for (const [key, value] of Object.entries(given)) {
    if (isEdit && key === "old") { place.append(changed(given.old, given.new)); continue; }
    if (isEdit && key === "new") continue;
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (text !== undefined && text.includes("\n")) place.append(folded(text, key));
    else place.append(element("span", { class: "mono" }, element("span", { class: "dim" }, ` ${key}=`), text ?? ""));
  }
  return place;
}

// What an edit takes out and puts in, without the lines that both begin and end with.
function changed(before, after) {
  const out = before.split("\n"), put = after.split("\n");
  let head = 0, tail = 0;
  while (head < Math.min(out.length, put.length) && out[head] === put[head]) head++;
  while (tail < Math.min(out.length, put.length) - head && out.at(-1 - tail) === put.at(-1 - tail)) tail++;
  const lines = [...out.slice(head, out.length - tail).map((line) => ["removed", `-${line}`]),
    ...put.slice(head, put.length - tail).map((line) => ["added", `+${line}`])];
  return element("pre", { class: "diff" }, ...lines.map(([kind, line]) => element("span", { class: kind }, line)));
}

function drawResult(result) {
  const place = element("div", { class: result.failed ? "result failed" : "result" });
  if (result.failed) place.append(element("span", { class: "bad" }, "failed"));
  if (result.text.trim()) place.append(folded(result.text));
  for (const name of result.subagents) place.append(element("p", { class: "dim" }, `subagent ${name}`));
  return place;
}

// A text, shown at once where it is short.
function folded(text, name = "", closed = false) {
  const lines = text.trimEnd().split("\n");
  const whole = element("pre", {}, text.trimEnd());
  if (!closed && text.length <= SHORT_CHARACTERS && lines.length <= SHORT_LINES) {
    return name ? element("div", {}, element("span", { class: "dim" }, name), whole) : whole;
  }
  const head = name || lines.find((line) => line.trim()) || "";
  return element("details", {}, element("summary", {}, `${head.slice(0, 110)} (${lines.length} lines)`), whole);
}
