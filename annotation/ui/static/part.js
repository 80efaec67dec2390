// A part of a plain page that is fetched by itself, so that the rest stays where it is.
//
// <a data-part="ID"> opens its address in the element with that id; <form data-part="ID"> does so
// with what its address answers, after the question of its data-ask-title, -text, -word and -yes.
// An element with data-live follows what happens, while nobody is doing anything in it: the frame's
// look at the side bar (frame.js) says whether anything has.

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
  const now = document.getElementById(id);
  if (held && !held.isConnected) (counterpart(held, now) ?? heading(now)).focus({ preventScroll: true });
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

// Compare has parts that it asks for by itself.
const isHere = (link) => Boolean(document.getElementById(link?.dataset.part));

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-part]");
  if (!isHere(link) || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
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
  const link = document.querySelector("[data-part]");
  if (isHere(link)) show(link.dataset.part, location.href);
});

// What somebody has chosen and not sent must not go back by itself to what it was.
const changed = (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked;

const busy = (part) =>
  document.hidden ||
  document.querySelector("dialog[open]") ||
  part.matches(":active, [aria-busy]") ||
  part.querySelector("input:focus, [aria-busy]") ||
  [...part.querySelectorAll("input:not([type=hidden])")].some(changed);

const REST = 4; // times as long as the last look took, nothing is asked for

let seen = null; // the news that the page shows
let rested = 0;

// Shows what has happened since, in all parts of the page with data-live.
export async function follow({ news, study } = {}) {
  const before = newest, began = performance.now();
  const parts = [...document.querySelectorAll("main [data-live]")].filter((part) => !busy(part));
  if (!parts.length) return;
  const here = new URL(location.href);
  if (study && !here.searchParams.has("study")) here.searchParams.set("study", study);
  const { page } = await fetched(here).catch(() => ({}));
  rested = performance.now() + REST * (performance.now() - began);
  if (!page || before !== newest) return;
  for (const { id } of parts) {
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    if (old && fresh && !busy(old)) replace(old, fresh);
  }
  seen = news ?? seen;
  dispatchEvent(new Event("studio:drawn"));
}

addEventListener("studio:looked", ({ detail }) => {
  seen ??= detail.news;
  if (detail.news !== seen && performance.now() >= rested) follow(detail);
});
