// A page that is closed gives back what it holds and nobody has answered.

import { rooted } from "./root.js";

// Other people get the items at once instead of when the reservation ends. They stay this
// person's until somebody takes them, so that a reload finds them again.
export function giveBack({ tab, who, items }) {
  if (!items.length) return;
  fetch(rooted("/api/release"), {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Annotator": who },
    body: JSON.stringify({ tab, items }),
    keepalive: true,
  }).catch(() => {}); // the reservation ends by itself
}
