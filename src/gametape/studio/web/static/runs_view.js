// The list of runs: its states and figures are brought up to date while the page is open.

import { element, figure, share } from "./elements.js";
import { ask } from "./source.js";

const MILLISECONDS_BETWEEN_LISTS = 3000;

export function mountRuns(place) {
  const look = async () => {
    if (document.hidden) return;
    try {
      update(place, await ask("runs"));
      place.classList.remove("stale");
    } catch {
      place.classList.add("stale");
    }
  };
  setInterval(look, MILLISECONDS_BETWEEN_LISTS);
}

function update(place, { rows }) {
  const known = new Map([...place.querySelectorAll("tr[data-run]")].map((row) => [row.dataset.run, row]));
  let isNew = false;
  for (const run of rows) {
    const row = known.get(run.name);
    if (!row) { isNew = true; continue; }
    known.delete(run.name);
    set(row, "state", run.state);
    row.querySelector("[data-cell=state]").className = `state ${run.state.replace(" ", "-")}`;
    for (const name of ["updates", "reward"]) set(row, name, figure(run[name]));
    set(row, "success", share(run.success));
    set(row, "alarm", run.alarm);
  }
  for (const row of known.values()) set(row, "state", "deleted");
  const note = place.querySelector("[data-note]");
  note?.replaceChildren(...(isNew ? ["There are new runs: ", element("a", { href: "/" }, "load the list again"), "."] : []));
}

function set(row, name, text) {
  const cell = row.querySelector(`[data-cell=${name}]`);
  if (cell && cell.textContent !== text) cell.textContent = text;
}
