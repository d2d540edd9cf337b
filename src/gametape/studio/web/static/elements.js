// Making elements. Texts become text nodes and nothing else: what a model or a tool wrote is never markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function shape(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

export function figure(value, digits = 4) {
  if (typeof value !== "number") return "-";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(digits)).toString();
}

export function share(value) {
  return typeof value === "number" ? `${(100 * value).toFixed(1)}%` : "-";
}

// Shows a failure where the content would have been.
export function showFailure(place, error) {
  if (place.ariaBusy) place.ariaBusy = "false";
  place.replaceChildren(element("p", { class: "failure", role: "alert" }, error.message));
}
