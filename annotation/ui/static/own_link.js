// A link of a person's own, to come back with; each time it is asked for it is a new one.

import { copied } from "./copying.js";
import { rooted } from "./root.js";

export async function showLink(view, who) {
  const dialog = view.$(".sl-back");
  const [address, told, button] = [".sl-address", ".sl-copied", ".sl-copy"].map(view.$);
  address.textContent = "…";
  const alone = /^(127\.0\.0\.1|localhost|\[::1\])$/.test(location.hostname);
  const here = alone ? view.say("copy.here") : "";
  told.textContent = here;
  button.disabled = false;
  if (!dialog.open) dialog.showModal();
  try {
    address.textContent = location.origin + (await askForLink(who));
  } catch {
    address.textContent = view.say("label.no_server");
    button.disabled = true; // there is no link to copy
    view.$(".sl-back .sl-close").focus();
  }
  button.onclick = async () => {
    const done = view.say((await copied(address)) ? "copy.done" : "copy.by_hand");
    told.textContent = `${done} ${here}`.trim();
  };
}

async function askForLink(who) {
  const response = await fetch(rooted("/api/link"), { method: "POST", headers: { "X-Annotator": who } });
  if (!response.ok) throw new Error(`${response.status}`);
  return (await response.json()).link;
}
