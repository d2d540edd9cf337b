// Sampled tokens with a colour each, and the table of what a hint did to the tokens of its target.

import { element, figure } from "./elements.js";

// What a token can be coloured by. `of` gives a number or null, `colour` a colour for the number.
export const CHANNELS = {
  surprisal: { label: "surprisal (nats of the sampled token)", of: surprisal, colour: (nats) => heat(nats / 3), ramp: ["0", "3 nats or more"] },
  targeted: { label: "targeted signal (what the hint changed)", of: targeted, colour: (nats) => signed(nats / 3), ramp: ["less likely with the hint", "likelier with it"] },
  advantage: { label: "advantage (what the reward gave)", of: advantage, colour: (value) => signed(value), ramp: ["-1", "+1"] },
  entropy: { label: "entropy (nats of the choice)", of: entropy, colour: (nats) => heat(nats / 3), ramp: ["0", "3 nats or more"], read: true },
  mismatch: { label: "mismatch (trainer minus sampler)", of: mismatch, colour: (nats) => signed(nats * 10), ramp: ["-0.1 nats", "+0.1 nats"], read: true },
  version: { label: "version of the weights", of: version, colour: (number) => `hsl(${(number * 67) % 360} 70% 50% / .35)` },
  none: { label: "no colour", of: () => null, colour: () => "" },
};

export function drawTokens(step, tape, channelName) {
  const channel = CHANNELS[channelName];
  const place = element("div", { class: "tokens", role: "group", "aria-label": "sampled tokens" });
  step.tokens.text.forEach((text, at) => {
    const span = element("span", { title: tokenTitle(step, tape, at) }, text);
    const value = channel.of(step, tape, at);
    if (value !== null) span.style.backgroundColor = channel.colour(value);
    if (step.tokens.mask.length && !step.tokens.mask[at]) span.className = "unmasked";
    if (targetAt(step, at)) span.classList.add("targeted");
    place.append(span);
  });
  if (step.tokens.more) place.append(element("span", { class: "dim" }, ` ... ${step.tokens.more} more tokens`));
  if (step.tokens.known) return place;
  const head = element("summary", {}, `${step.tokens.text.length} sampled tokens, as numbers: their tokenizer is not known`);
  return element("details", {}, head, place);
}

// What the colours of a channel mean, from one end to the other.
export function drawScale(channelName) {
  const { ramp, colour } = CHANNELS[channelName];
  if (!ramp) return null;
  const bar = element("i", { class: "ramp" });
  const ends = channelName === "surprisal" || channelName === "entropy" ? [0, 0.1, 0.4, 1] : [-1, -0.3, 0, 0.3, 1];
  const reach = { advantage: 1, mismatch: 0.1 }[channelName] ?? 3;
  bar.style.background = `linear-gradient(90deg, ${ends.map((share) => colour(share * reach)).join(", ")})`;
  return element("span", {}, ramp[0], bar, ramp[1]);
}

function tokenTitle(step, tape, at) {
  const lines = [`token ${at + 1}`];
  if (step.tokens.logprob.length) lines.push(`log p ${figure(step.tokens.logprob[at])}`);
  if (step.tokens.mask.length) lines.push(step.tokens.mask[at] ? "learned from" : "not learned from");
  if (typeof step.tokens.version[at] === "number") lines.push(`weights version ${step.tokens.version[at]}`);
  if (step.tokens.entropy.length) lines.push(`entropy ${figure(step.tokens.entropy[at])} nats`);
  if (mismatch(step, tape, at) !== null) lines.push(`trainer - sampler ${figure(mismatch(step, tape, at))} nats`);
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

function entropy(step, tape, at) {
  return step.tokens.entropy[at] ?? null;
}

function mismatch(step, tape, at) {
  const { learner, logprob } = step.tokens;
  return at < learner.length && at < logprob.length ? learner[at] - logprob[at] : null;
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
  return `rgb(var(--hot) / ${(0.62 * Math.sqrt(Math.min(1, Math.max(0, share)))).toFixed(3)})`;
}

function signed(share) {
  const strength = (0.62 * Math.sqrt(Math.min(1, Math.abs(share)))).toFixed(3);
  return `rgb(var(--${share >= 0 ? "up" : "down"}) / ${strength})`;
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

// Two forks of the rollout from this turn on, of one seed: without the hint and with it.
export function drawForks({ parting, plain, hinted }) {
  const side = (title, { passed, turns, more }) => element("section", {},
    element("h3", {}, `${title}: `, element("span", { class: passed ? "good" : "bad" }, passed ? "succeeds" : "fails")),
    element("ol", {}, ...turns.map((turn, at) => element("li", { class: at === parting ? "parts" : false },
      turn.said ? element("span", {}, `${turn.said} `) : null,
      ...turn.calls.map((call) => element("span", { class: "mono" }, call)),
      turn.result ? element("span", { class: turn.failed ? "bad" : "dim" }, ` ${turn.result}`) : null))),
    more ? element("p", { class: "dim" }, `${figure(more)} more turns`) : null);
  return element("section", { class: "forks", "aria-label": "forks with the hint and without it" },
    side("Without the hint", plain), side("With the hint", hinted));
}

function columnTable({ columns, update }) {
  const head = ["token", "log p, no hint", "log p, hinted", "difference"];
  if (columns.kl) head.push("divergence, nats", "weight", "likeliest without", "with it");
  const rows = columns.student.map((student, at) => {
    const cells = [columns.text[at] ?? "", figure(student), figure(columns.teacher[at]), figure(columns.teacher[at] - student)];
    if (columns.kl) {
      cells.push(figure(columns.kl[at]), figure(columns.weights[at]), tops(columns.student_top[at]), tops(columns.teacher_top[at]));
    }
    const row = element("tr", {}, ...cells.map((text, place) => element("td", { class: place > 0 && place < 6 ? "mono number" : "mono" }, text)));
    row.cells[3].style.backgroundColor = signed((columns.teacher[at] - student) / 3);
    return row;
  });
  const told = update ? `as measured in update ${update}` : "as the coach measured it";
  return element("div", { class: "wide" }, element("table", {}, element("caption", {}, `Teacher against student, ${told}`),
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows)));
}

function tops(pairs) {
  return (pairs ?? []).slice(0, 2).filter(([, share]) => share >= 0.001).map(([text, share]) => `${text} ${(100 * share).toFixed(1)}%`).join("  ");
}
