// Elements, handlers and addresses that no page of the studio has.
const own = location.origin === "null" ? "file:" : location.origin;
const strange = [...document.querySelectorAll("img, iframe, object, embed, base, template, video, audio, math, marquee, portal, meta[http-equiv=refresh]")];
const scripts = [...document.scripts].filter((one) => one.src ? new URL(one.src).origin !== own : one.id !== "data" && one.type !== "module");
const styles = [...document.querySelectorAll("style, link[rel=stylesheet]")].filter((one) => one.sheet?.cssRules.length < 20);
const handlers = [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on") || name === "srcdoc"));
const links = [...document.querySelectorAll("[href], [src], [action], [formaction]")].filter((one) => {
  const target = new URL(one.href?.baseVal ?? one.getAttribute("href") ?? one.getAttribute("src") ?? one.getAttribute("action"), location.href);
  return target.protocol !== location.protocol && target.href !== "data:," || (target.host && target.host !== location.host);
});
return [...strange, ...scripts, ...styles, ...handlers, ...links].map((one) => one.outerHTML.slice(0, 200));
