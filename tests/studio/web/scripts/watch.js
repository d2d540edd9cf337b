// Notes when what a page is for was painted, and events that took longer than a frame.
(() => {
  window.painted = null;
  const look = () => {
    if (window.painted !== null || !document.querySelector("main") || document.querySelector("[aria-busy=true]")) return;
    if (!document.querySelector("article.step, figure.chart, td")) return;
    window.painted = 0;
    requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
  };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ["aria-busy"]});
  window.slow = [];
  new PerformanceObserver((list) => window.slow.push(...list.getEntries().map((one) => [one.duration, one.name])))
    .observe({type: "event", durationThreshold: 16, buffered: true});
})();
