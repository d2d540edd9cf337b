// Runs before a page's own scripts: notes what the page must not do.
window.observed = {policy: [], errors: [], ran: []};
window.ran = (what) => window.observed.ran.push(String(what));
window.alert = window.prompt = window.confirm = (what) => { window.ran(what); return true; };
document.addEventListener("securitypolicyviolation", (event) =>
  window.observed.policy.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
window.addEventListener("error", (event) => window.observed.errors.push(event.message || `cannot load ${event.target?.src ?? ""}`), true);
window.addEventListener("unhandledrejection", (event) => window.observed.errors.push(String(event.reason)));
