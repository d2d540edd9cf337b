// Finds the parts of a page that are drawn here, and draws them.

import { showFailure } from "./elements.js";
import { mountLines } from "./lines_view.js";
import { mountRun } from "./run_view.js";
import { mountRuns } from "./runs_view.js";
import { mountTalk } from "./talk_view.js";
import { mountTape } from "./tape_view.js";

for (const place of document.querySelectorAll("[data-view]")) {
  const { view } = place.dataset, { run, rollout, subagent } = JSON.parse(place.dataset.names ?? "{}");
  if (view === "run") mountRun(place).catch((error) => showFailure(place, error));
  else if (view === "runs") mountRuns(place);
  else if (view === "talk") mountTalk(place, run);
  else if (view === "lines") mountLines(place);
  else if (view === "tape") mountTape(place, run, rollout, subagent);
  else if (view === "tapes") mountChosen(place, run);
}

// In an exported file: the rollout that the address names.
function mountChosen(place, run) {
  let shown = null, drawn = null;
  const show = async () => {
    const rollout = new URLSearchParams(location.hash.slice(1)).get("rollout");
    if (rollout === null || rollout === shown) return;
    shown = rollout;
    drawn?.close();
    drawn = await mountTape(place, run, rollout);
    if (!new URLSearchParams(location.hash.slice(1)).get("step")) place.scrollIntoView();
  };
  window.addEventListener("hashchange", show);
  show();
}
