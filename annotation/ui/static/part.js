// A part of a plain page that is fetched by itself, so that the rest stays where it is.
//
// <a data-part="ID"> opens its address in the element with that id; <form data-part="ID"> does so
// with what its address answers, after the question of its data-ask-title, -text, -word and -yes.
// An element with data-refresh="SECONDS" is looked at again while nobody is doing anything in it.

import { asked } from "./asking.js";
import { replace } from "./replacing.js";

const studio = () => window.studio ?? {};

async function fetched(address, options) {
  const reply = await asked(address, { headers: { Accept: "text/html" }, ...options });
  return { page: new DOMParser().parseFromString(await reply.text(), "text/html"), url: reply.url };
}

function put(id, page) {
  const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
  if (!old || !fresh) return location.reload();
  const held = old.contains(document.activeElement) && document.activeElement;
  replace(old, fresh);
  if (held) (counterpart(held, fresh) ?? heading(fresh)).focus({ preventScroll: true });
}

function counterpart(held, fresh) {
  for (const name of ["data-key", "aria-label"]) {
    const value = held.getAttribute(name);
    if (value) return fresh.querySelector(`[${name}="${CSS.escape(value)}"]`);
  }
  return null;
}

// Where whoever goes by keys goes on from, as what they pressed is gone.
function heading(fresh) {
  const found = fresh.querySelector("h2") ?? fresh;
  found.tabIndex = -1;
  return found;
}

let newest = 0; // of several presses the last counts, whichever answer comes first

async function show(id, address, options) {
  const mine = ++newest;
  const old = document.getElementById(id);
  old?.setAttribute("aria-busy", "true");
  try {
    const { page, url } = await fetched(address, options);
    if (mine !== newest) return null;
    put(id, page);
    return url;
  } catch (error) {
    if (mine === newest) old?.removeAttribute("aria-busy");
    studio().tell?.(error.message);
    return null;
  }
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-part]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const url = await show(link.dataset.part, link.href);
  if (url) history.pushState({ part: link.dataset.part }, "", url);
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-part]");
  if (!form) return;
  event.preventDefault();
  const { part, askTitle, askText, askWord, askYes, tell } = form.dataset;
  if (askTitle && studio().ask) {
    const question = { title: askTitle, text: askText, type: askWord, yes: askYes };
    if (!(await studio().ask(question))) return;
    if (askWord && form.elements.typed) form.elements.typed.value = askWord;
  }
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const url = await show(part, form.action, { method: "POST", body });
  if (!url) return;
  history.replaceState({ part }, "", url);
  if (tell) studio().tell?.(tell);
});

window.addEventListener("popstate", () => {
  const part = document.querySelector("[data-part]")?.dataset.part;
  if (part) show(part, location.href);
});

// What somebody has chosen and not sent must not go back by itself to what it was.
const changed = (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked;

const busy = (part) =>
  document.hidden ||
  document.querySelector("dialog[open]") ||
  part.matches(":active, [aria-busy]") ||
  part.querySelector("input:focus") ||
  [...part.querySelectorAll("input")].some(changed);

for (const { id, dataset } of document.querySelectorAll("[data-refresh]")) {
  setInterval(async () => {
    const part = document.getElementById(id);
    if (!part || busy(part)) return;
    const before = newest;
    const { page } = await fetched(location.href).catch(() => ({}));
    const fresh = page?.getElementById(id);
    if (!fresh || busy(part) || before !== newest) return;
    if (document.getElementById(id)?.innerHTML !== fresh.innerHTML) put(id, page);
  }, 1000 * dataset.refresh);
}
