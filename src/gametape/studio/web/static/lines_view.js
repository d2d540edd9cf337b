// Charts whose figures are in the page already: a list of what `lineChart` takes.

import { lineChart } from "./chart.js";

export function mountLines(place) {
  place.replaceChildren(...JSON.parse(place.dataset.charts).map((chart) => lineChart(chart)));
  place.setAttribute("aria-busy", "false");
}
