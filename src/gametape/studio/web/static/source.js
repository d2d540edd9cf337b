// Where a page's data comes from: the server, or, in an exported file, what was put into the page.

const embedded = document.getElementById("data");
const answers = embedded ? JSON.parse(embedded.textContent) : null;

export const isExported = answers !== null;

// The answer to a question such as ("steps", {run, rollout, first}). Throws an Error with one line for people.
export async function ask(kind, parameters = {}) {
  if (isExported) {
    const key = [kind, parameters.run ?? "", parameters.rollout ?? "", parameters.first ?? ""].join("|");
    if (!(key in answers)) throw new Error("this was not exported");
    return answers[key];
  }
  let answer;
  try {
    answer = await fetch(`/data/${kind}?${new URLSearchParams(parameters)}`);
  } catch {
    throw new Error("the server does not answer; is gametape studio still running?");
  }
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(body.error ?? `the server answered ${answer.status}`);
  return body;
}

// Calls `handlers[kind](data)` for each event of a run, until one of them returns false. Does nothing in an exported file.
export function follow(run, after, handlers) {
  if (isExported) return;
  const events = new EventSource(`/events?${new URLSearchParams({ run, after })}`);
  for (const [kind, handle] of Object.entries(handlers)) {
    events.addEventListener(kind, (event) => {
      if (handle(JSON.parse(event.data)) === false) events.close();
    });
  }
}
