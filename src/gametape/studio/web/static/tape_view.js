// One rollout from its first step to its last. Only the rows near the screen exist; the others are empty blocks.

import { element, figure, showFailure } from "./elements.js";
import { ask, isExported } from "./source.js";
import { drawMark, drawStep } from "./step_view.js";
import { drawStrip } from "./strip_view.js";
import { CHANNELS, drawScale } from "./token_view.js";

const SOURCE = 0, TURN = 1, BITS = 3, SURPRISAL = 4, VERSION = 5;
const FAILED = 1, TARGET = 2, FLAG = 4, EVENT = 8, COMPACTION = 16, CUT_OFF = 32;
const DERAILED = FAILED | TARGET | FLAG;
const FILTERS = {
  all: { label: "everything", has: () => true },
  agent: { label: "the agent's turns", has: (row) => row[SOURCE] === 2 },
  derailed: { label: "where it went wrong", has: (row) => row[BITS] & DERAILED },
  failed: { label: "failed calls", has: (row) => row[BITS] & FAILED },
  target: { label: "targets of the coach", has: (row) => row[BITS] & TARGET },
  flag: { label: "integrity flags", has: (row) => row[BITS] & FLAG },
  event: { label: "violations and nudges", has: (row) => row[BITS] & EVENT },
  compaction: { label: "compactions", has: (row) => row[BITS] & COMPACTION },
  cut: { label: "replies that were cut off", has: (row) => row[BITS] & CUT_OFF },
};
const ROW_HEIGHT = 130, MOST_SLICES_KEPT = 40;
const MILLISECONDS_BETWEEN_LOOKS = 2000;

export async function mountTape(place, run, rollout, subagent = "") {
  const names = { run, rollout, ...(subagent ? { subagent } : {}) };
  try {
    const view = new TapeView(place, names, await ask("tape", names));
    view.draw();
    view.goToAddress();
    return view;
  } catch (error) {
    showFailure(place, error);
    return null;
  }
}

export class TapeView {
  constructor(place, names, tape) {
    Object.assign(this, { place, names, tape });
    this.slices = new Map();
    this.filter = "all";
    this.channel = tape.scored ? "surprisal" : "none";
    this.current = 0;
    this.closed = new AbortController();
  }

  draw() {
    const { signal } = this.closed;
    this.list = element("div", { class: "tape", role: "feed", "aria-label": "steps", "aria-busy": "false" });
    this.status = element("span", { class: "dim", role: "status" });
    this.strip = element("canvas", { class: "strip", height: 46, role: "img", "aria-label": "the whole rollout; j and k walk through it" });
    this.strip.addEventListener("click", (event) => this.goTo(this.stepAt(event)));
    this.scale = element("div", { class: "scale" });
    this.place.replaceChildren(this.head(), element("div", { class: "controls" }, this.tools(), this.strip, this.scale), this.list);
    this.place.setAttribute("aria-busy", "false");
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    window.addEventListener("hashchange", () => this.goToAddress(), { signal });
    window.addEventListener("resize", () => this.drawStrip(), { signal });
    this.layOut();
    if (this.tape.running && !isExported) this.timer = setInterval(() => this.lookAgain(), MILLISECONDS_BETWEEN_LOOKS);
  }

  close() {
    this.closed.abort();
    clearInterval(this.timer);
    this.observer?.disconnect();
  }

  head() {
    const tape = this.tape;
    const words = [`${figure(tape.turns)} turns`, `${figure(tape.steps)} steps`,
      `${figure(tape.prompt_tokens)} tokens read`, `${figure(tape.completion_tokens)} written`,
      tape.cost_usd ? `$${figure(tape.cost_usd)}` : "", typeof tape.reward === "number" ? `reward ${figure(tape.reward)}` : "",
      tape.advantage !== null ? `advantage ${figure(tape.advantage)}` : "", tape.model];
    const ended = [tape.outcome || "no outcome", tape.reason === tape.outcome ? "" : tape.reason].filter(Boolean).join(": ");
    const head = element("header", { class: "tape-head" }, element("h1", {}, tape.title || tape.task || tape.name),
      element("ul", { class: "facts-row", "aria-label": "about this rollout" },
        element("li", { class: tape.outcome === "passed" ? "good" : tape.outcome === "failed" ? "bad" : "" }, ended),
        ...words.filter(Boolean).map((word) => element("li", {}, word))));
    if (tape.checks.length) {
      const layers = tape.checks.map((check) => element("li", {}, `${check.name} ${figure(check.score)}: ${check.detail}`));
      head.append(element("details", {}, element("summary", {}, "verdict by layer"), element("ul", {}, ...layers)));
    }
    if (tape.subagents.length) {
      const link = (name) => isExported ? element("span", {}, `${name} `)
        : element("a", { href: `/tape?${new URLSearchParams({ ...this.names, subagent: name })}` }, `${name} `);
      head.append(element("p", {}, element("span", { class: "dim" }, "subagents: "), ...tape.subagents.map(link)));
    }
    for (const mark of tape.loose_marks) head.append(drawMark(mark));
    return head;
  }

  tools() {
    const choice = (label, options, chosen, choose) => element("label", {}, `${label} `,
      element("select", { on: { change: (event) => choose(event.target.value) } },
        ...Object.entries(options).map(([value, { label: text, missing }]) =>
          element("option", { value, selected: value === chosen, disabled: Boolean(missing) }, text))));
    const channels = Object.fromEntries(Object.entries(CHANNELS).map(([name, channel]) =>
      [name, channel.read && !this.tape.read ? { label: `${name} (not recorded here)`, missing: true } : channel]));
    const button = (key, text, title, act) => element("button", { type: "button", title, "aria-keyshortcuts": key, on: { click: act } },
      `${text} `, element("kbd", {}, key));
    return element("div", { class: "tools", role: "toolbar", "aria-label": "the tape" },
      choice("colour", channels, this.channel, (value) => this.colourBy(value)),
      choice("show", FILTERS, this.filter, (value) => { this.filter = value; this.layOut(); }),
      button("k", "previous", "the step before", () => this.walk(-1)), button("j", "next", "the step after", () => this.walk(1)),
      button("n", "next derailment", "the next target, flag or failed call", () => this.nextDerailment()), this.status);
  }

  // What is on the screen is drawn anew, and everything stays where it is.
  colourBy(channel) {
    this.channel = channel;
    for (const block of this.blocks.filter((block) => block.rows)) {
      block.rows = null;
      this.fill(block);
    }
    this.drawScale();
    this.drawStrip();
  }

  drawScale() {
    const kinds = [["flag", "integrity flag"], ["target", "target of the coach"], ["failed", "failed call"], ["event", "other event"]];
    this.scale.replaceChildren(...kinds.map(([kind, text]) => element("span", {}, element("i", { class: `mark-${kind}` }), text)),
      ...[drawScale(this.channel)].filter(Boolean));
  }

  // Empty blocks of the height that their rows will about have; what comes near the screen is filled.
  layOut() {
    this.observer?.disconnect();
    const { facts, slice } = this.tape;
    this.shown = facts.map((row, at) => at).filter((at) => FILTERS[this.filter].has(facts[at]));
    this.blocks = [];
    for (let at = 0; at < this.shown.length; at += slice) this.blocks.push(this.newBlock(this.shown.slice(at, at + slice)));
    const nothing = element("p", { class: "dim" }, facts.length ? "No step is like that." : "No step is recorded yet.");
    this.list.replaceChildren(...(this.blocks.length ? this.blocks : [nothing]));
    this.observer = new IntersectionObserver((entries) => entries.forEach((entry) =>
      entry.isIntersecting ? this.fill(entry.target) : this.empty(entry.target)), { rootMargin: "1200px" });
    this.blocks.forEach((block) => this.observer.observe(block));
    this.drawScale();
    this.tell();
    this.drawStrip();
  }

  // Steps were added: what is shown stays where it is, and only the last block is made anew.
  grow(tape) {
    const known = this.tape.steps;
    if (tape.steps < known || !this.blocks.length) { this.tape = tape; this.layOut(); return; }
    this.tape = tape;
    const added = tape.facts.map((row, at) => at).slice(known).filter((at) => FILTERS[this.filter].has(tape.facts[at]));
    const last = this.blocks.pop();
    const numbers = [...last.numbers, ...added];
    this.shown.push(...added);
    this.observer.unobserve(last);
    last.remove();
    for (let at = 0; at < numbers.length; at += tape.slice) this.blocks.push(this.newBlock(numbers.slice(at, at + tape.slice)));
    for (const block of this.blocks) if (!block.isConnected) { this.list.append(block); this.observer.observe(block); }
    this.tell();
    this.drawStrip();
  }

  newBlock(numbers) {
    const block = element("div", { class: "block" });
    block.numbers = numbers;
    block.style.minHeight = `${numbers.length * ROW_HEIGHT}px`;
    return block;
  }

  // Draws the rows of a block, once; the promise is kept, so that whoever comes later waits for the same rows.
  fill(block) {
    block.rows ??= this.drawRows(block);
    return block.rows;
  }

  async drawRows(block) {
    try {
      const steps = await Promise.all(block.numbers.map((at) => this.step(at)));
      if (!block.rows) return;
      block.replaceChildren(...steps.map((step) => drawStep(step, this.tape, this.channel, (number) => this.address(number))));
      [...block.children].forEach((row, place) => {
        row.setAttribute("aria-posinset", block.numbers[place] + 1);
        row.setAttribute("aria-setsize", this.tape.steps);
      });
      block.style.minHeight = "";
      this.markCurrent();
    } catch (error) {
      showFailure(block, error);
    }
  }

  // A block that somebody is on the way to, or reads, stays.
  empty(block) {
    if (!block.rows || block.wanted || block.contains(document.activeElement)) return;
    block.style.minHeight = `${block.offsetHeight}px`;
    block.rows = null;
    block.replaceChildren();
  }

  async step(at) {
    const first = at - (at % this.tape.slice);
    if (!this.slices.has(first)) {
      this.slices.set(first, ask("steps", { ...this.names, first }));
      if (this.slices.size > MOST_SLICES_KEPT) this.slices.delete(this.slices.keys().next().value);
    }
    const { steps } = await this.slices.get(first);
    if (!steps[at - first]) throw new Error(`step ${at + 1} is not there any more`);
    return steps[at - first];
  }

  async goTo(at) {
    const block = this.blocks.find(({ numbers }) => numbers.includes(at));
    if (!block) {
      if (this.filter === "all") return;
      this.filter = "all";
      this.layOut();
      await this.goTo(at);
      return;
    }
    this.current = at;
    block.wanted = true;
    await this.fill(block);
    const row = block.children[block.numbers.indexOf(at)];
    row?.scrollIntoView({ block: "start" });
    row?.focus({ preventScroll: true });
    block.wanted = false;
    history.replaceState(null, "", this.address(at + 1));
    this.markCurrent();
    this.tell();
  }

  walk(by) {
    const place = this.shown.findIndex((at) => at >= this.current);
    const here = place < 0 ? this.shown.length - 1 : place;
    const wanted = this.shown[Math.min(this.shown.length - 1, Math.max(0, here + by))];
    if (wanted !== undefined) this.goTo(wanted);
  }

  nextDerailment() {
    const { facts } = this.tape;
    for (let away = 1; away <= facts.length; away++) {
      const at = (this.current + away) % facts.length;
      if (facts[at][BITS] & DERAILED) { this.goTo(at); return; }
    }
    this.status.textContent = "nothing in this rollout went wrong";
  }

  address(step) {
    const parameters = new URLSearchParams(isExported ? { rollout: this.names.rollout, step } : { step });
    return `#${parameters}`;
  }

  goToAddress() {
    const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("step"));
    if (Number.isInteger(wanted) && wanted >= 1 && wanted <= this.tape.steps && wanted - 1 !== this.current) this.goTo(wanted - 1);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    const act = { j: () => this.walk(1), k: () => this.walk(-1), n: () => this.nextDerailment() }[event.key];
    if (act) { event.preventDefault(); act(); }
  }

  markCurrent() {
    for (const block of this.blocks) {
      [...block.children].forEach((row, place) => row.classList.toggle("current", block.numbers[place] === this.current));
    }
    this.drawStrip();
  }

  tell() {
    const row = this.tape.facts[this.current];
    this.status.textContent = row ? `step ${this.current + 1} of ${this.tape.steps}, turn ${row[TURN]}; ${this.shown.length} shown` : "";
  }

  stepAt(event) {
    const box = this.strip.getBoundingClientRect();
    return Math.min(this.tape.steps - 1, Math.floor(((event.clientX - box.left) / box.width) * this.tape.steps));
  }

  // What a step is coloured by, from -1 to 1; 0 where it has no such figure.
  stripValue(at) {
    const row = this.tape.facts[at], mean = this.tape.means[this.channel]?.[at + 1] ?? 0;
    const shares = { surprisal: (row[SURPRISAL] ?? 0) / 2, version: ((row[VERSION] ?? 0) % 8) / 8, entropy: mean / 2,
      targeted: mean / 3, mismatch: mean * 10, advantage: mean, none: 0 };
    return Math.max(-1, Math.min(1, shares[this.channel]));
  }

  drawStrip() {
    drawStrip(this.strip, this.tape.facts, {
      value: (at) => this.stripValue(at), signed: ["targeted", "mismatch", "advantage"].includes(this.channel),
      marked: (row) => (row[BITS] & FLAG ? "flag" : row[BITS] & TARGET ? "target" : row[BITS] & FAILED ? "failed" : row[BITS] & (EVENT | COMPACTION | CUT_OFF) ? "event" : ""),
      agent: (row) => row[SOURCE] === 2, current: this.current,
    });
  }

  async lookAgain() {
    try {
      const tape = await ask("tape", this.names);
      if (tape.steps === this.tape.steps && tape.running) return;
      this.slices.delete(this.tape.steps - (this.tape.steps % this.tape.slice));
      this.grow(tape);
      if (!tape.running) clearInterval(this.timer);
    } catch (error) {
      clearInterval(this.timer);
      this.status.textContent = error.message;
    }
  }
}
