// Let the page open without a network, too: a service worker keeps it. Needs https or localhost.

import { rooted } from "./root.js";

export async function keepPage() {
  if (!navigator.serviceWorker) return;
  try {
    await navigator.serviceWorker.register(rooted("/label/worker.js"), { scope: rooted("/label") });
    const { active } = await navigator.serviceWorker.ready;
    const parts = [...document.querySelectorAll(`link[href^="${rooted("/static/")}"]`)].map((one) => one.href);
    active.postMessage({ keep: [location.pathname, ...new Set(parts)] });
  } catch {
    // Refused, as in a private window: the page needs a network to open.
  }
}
