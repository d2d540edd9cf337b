// Sampled tokens with a colour each, and the table of what a hint did to the tokens of its target.

import { element, figure } from "./elements.js";

// What a token can be coloured by. `of` gives a number or null, `colour` a colour for the number.
export const CHANNELS = {
  surprisal: { label: "surprisal (nats of the sampled token)", of: surprisal, colour: (nats) => heat(nats / 4) },
  targeted: { label: "targeted signal (what the hint changed)", of: targeted, colour: (nats) => signed(nats / 3) },
  advantage: { label: "advantage (what the reward gave)", of: advantage, colour: (value) => signed(value) },
  version: { label: "version of the weights", of: version, colour: (number) => `hsl(${(number * 67) % 360} 70% 50% / .35)` },
  none: { label: "no colour", of: () => null, colour: () => "" },
};

export function drawTokens(step, tape, channelName) {
  const channel = CHANNELS[channelName];
  const place = element("div", { class: "tokens", "aria-label": "sampled tokens" });
  step.tokens.text.forEach((text, at) => {
    const span = element("span", { title: tokenTitle(step, tape, at) }, text);
    const value = channel.of(step, tape, at);
    if (value !== null) span.style.backgroundColor = channel.colour(value);
    if (step.tokens.mask.length && !step.tokens.mask[at]) span.className = "unmasked";
    if (targetAt(step, at)) span.classList.add("targeted");
    place.append(span);
  });
  if (step.tokens.more) place.append(element("span", { class: "dim" }, ` ... ${step.tokens.more} more tokens`));
  return place;
}

function tokenTitle(step, tape, at) {
  const lines = [`token ${at + 1}`];
  if (step.tokens.logprob.length) lines.push(`log p ${figure(step.tokens.logprob[at])}`);
  if (step.tokens.mask.length) lines.push(step.tokens.mask[at] ? "learned from" : "not learned from");
  if (typeof step.tokens.version[at] === "number") lines.push(`weights version ${step.tokens.version[at]}`);
  const given = advantage(step, tape, at);
  if (given !== null) lines.push(`advantage ${figure(given)}`);
  const signal = targeted(step, tape, at);
  if (signal !== null) lines.push(`hint: teacher - student ${figure(signal)} nats`);
  return lines.join("\n");
}

function surprisal(step, tape, at) {
  return step.tokens.logprob.length ? -step.tokens.logprob[at] : null;
}

function advantage(step, tape, at) {
  return tape.advantage !== null && step.tokens.mask[at] ? tape.advantage : null;
}

function version(step, tape, at) {
  return step.tokens.version[at] ?? null;
}

function targetAt(step, at) {
  return step.targets.find(({ span }) => Array.isArray(span) && at >= span[0] && at < span[1]);
}

function targeted(step, tape, at) {
  const target = targetAt(step, at);
  if (!target) return null;
  const { student, teacher } = target.columns, inside = at - target.span[0];
  return inside < student.length && inside < teacher.length ? teacher[inside] - student[inside] : null;
}

function heat(share) {
  return `rgb(214 96 33 / ${(0.75 * Math.min(1, Math.max(0, share))).toFixed(3)})`;
}

function signed(share) {
  const strength = (0.75 * Math.min(1, Math.abs(share))).toFixed(3);
  return share >= 0 ? `rgb(43 140 84 / ${strength})` : `rgb(190 50 60 / ${strength})`;
}

// A hint with its author and gates, and teacher against student token by token.
export function drawTarget(target) {
  const noticed = target.noticed ? `, seen at step ${target.noticed}` : "";
  const place = element("section", { class: "target", "aria-label": "target of the coach" },
    element("p", {}, element("b", {}, "coach: "), element("span", { class: "hint" }, target.text ?? "")),
    element("p", { class: "dim" }, `${target.type ?? ""}; said by ${target.author ?? "?"}, found by ${target.source ?? "?"}${noticed}` +
      `${target.used ? "" : "; not used"}${target.refused ? `: ${target.refused}` : ""}` +
      `${typeof target.kl === "number" ? `; KL ${figure(target.kl)} nats` : ""}`));
  if (target.evidence) place.append(element("p", { class: "dim" }, `evidence: ${target.evidence}`));
  for (const gate of target.gates) {
    place.append(element("p", { class: gate.passed ? "good" : "bad" },
      `${gate.name} ${gate.passed ? "passed" : "failed"}, ${figure(gate.value)} ${gate.detail}`));
  }
  if (target.columns.student.length) place.append(columnTable(target));
  return place;
}

function columnTable({ columns, update }) {
  const head = ["token", "log p, no hint", "log p, hinted", "difference"];
  if (columns.kl) head.push("divergence, nats", "weight", "likeliest without", "likeliest with");
  const rows = columns.student.map((student, at) => {
    const cells = [columns.text[at] ?? "", figure(student), figure(columns.teacher[at]), figure(columns.teacher[at] - student)];
    if (columns.kl) {
      cells.push(figure(columns.kl[at]), figure(columns.weights[at]), tops(columns.student_top[at]), tops(columns.teacher_top[at]));
    }
    return element("tr", {}, ...cells.map((text, place) => element("td", { class: place > 0 && place < 6 ? "mono number" : "mono" }, text)));
  });
  const told = update ? `as measured in update ${update}` : "as the coach measured it";
  return element("div", { class: "wide" }, element("table", {}, element("caption", {}, `Teacher against student, ${told}`),
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows)));
}

function tops(pairs) {
  return (pairs ?? []).slice(0, 3).map(([text, share]) => `${text} ${figure(share, 3)}`).join("   ");
}
