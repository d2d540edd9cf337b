// What can be used and has no name for a screen reader.
const named = (one) => (one.innerText || one.getAttribute("aria-label") || one.title || one.labels?.[0]?.innerText || "").trim();
return [...document.querySelectorAll("a, button, select, input:not([type=hidden]), canvas, svg[role=img], summary")]
  .filter((one) => !named(one)).map((one) => one.outerHTML.slice(0, 120));
