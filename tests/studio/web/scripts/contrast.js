// Texts that stand out too little from what is behind them: below 4.5 to 1.
const parts = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
const light = (rgb) => {
  const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  const layers = [];
  for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor; if (/^rgb/.test(c)) layers.push(parts(c)); }
  return layers.reverse().reduce((under, [r, g, b, a]) => [r, g, b].map((v, at) => v * a + under[at] * (1 - a)), [255, 255, 255]);
};
return [...new Set([...document.querySelectorAll("body *")].filter((one) => one.checkVisibility() && !one.closest("svg, .skip, option")
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .map((one) => { const a = light(parts(getComputedStyle(one).color).slice(0, 3)), b = light(behind(one));
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `${one.tagName}.${one.className}`]; })
  .filter(([ratio]) => ratio < 4.5).map(([ratio, name]) => `${name} ${ratio.toFixed(2)}`))];
