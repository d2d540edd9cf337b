// Tries every choice of every list.
const done = arguments[0], selects = [...document.querySelectorAll("select")];
(async () => {
  for (const select of selects) for (const option of [...select.options].filter((one) => !one.disabled)) {
    select.value = option.value;
    select.dispatchEvent(new Event("change", {bubbles: true}));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 5)));
  }
  for (const select of selects) { select.selectedIndex = 0; select.dispatchEvent(new Event("change", {bubbles: true})); }
  done(true);
})();
