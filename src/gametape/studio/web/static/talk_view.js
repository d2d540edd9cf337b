// The end of a conversation, and how it goes on while somebody looks at it.

import { element, showFailure } from "./elements.js";
import { ask } from "./source.js";
import { drawStep } from "./step_view.js";

const MOST_SHOWN = 40;
const MILLISECONDS_BETWEEN_ASKING = 1000;

// `place` is a <details>: nothing is asked while it is closed.
export function mountTalk(place, run) {
  const log = element("div", { role: "log", "aria-label": `the conversation of ${run}`, tabindex: 0, class: "talk" });
  place.append(log);
  let shown = null, timer = null, asking = null;
  const look = async () => {
    const tape = await ask("tape", { run });
    if (tape.steps !== shown) {
      const wanted = shown === null || tape.steps < shown ? Math.max(0, tape.steps - MOST_SHOWN) : shown;
      if (wanted !== shown) log.replaceChildren();
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      log.append(...await stepsFrom(run, tape, wanted));
      while (log.children.length > MOST_SHOWN) log.firstChild.remove();
      if (atEnd || shown === null) log.scrollTop = log.scrollHeight;
      shown = tape.steps;
    }
    if (!tape.steps) log.replaceChildren(element("p", { class: "dim" }, "Nothing was said yet."));
    clearTimeout(timer);
    if (tape.running && place.open) timer = setTimeout(lookOnce, MILLISECONDS_BETWEEN_ASKING);
  };
  const lookOnce = () => { asking ??= look().catch((error) => showFailure(log, error)).finally(() => { asking = null; }); };
  place.addEventListener("toggle", () => { // an open one tells of it when the page is loaded, too
    clearTimeout(timer);
    if (place.open) lookOnce();
  });
}

async function stepsFrom(run, tape, wanted) {
  const rows = [];
  for (let first = wanted - (wanted % tape.slice); first < tape.steps; first += tape.slice) {
    const { steps } = await ask("steps", { run, first });
    rows.push(...steps.filter((step, at) => first + at >= wanted && first + at < tape.steps));
  }
  return rows.map((step) => drawStep(step, tape, "none", (number) => `/tape?${new URLSearchParams({ run })}#step=${number}`));
}
