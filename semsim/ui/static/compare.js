// Compare: a choice asks for the part of the page that depends on it. The address holds all choices.

import { asked } from "../../static/annotation/asking.js";

const PAGE = new URL(".", import.meta.url).pathname.slice(0, -1);
const asking = new Map(); // part -> what stops the request before
// With the study that is shown: another page may have chosen another meanwhile.
function state() {
  const params = new URLSearchParams(location.search);
  const { study } = document.querySelector(".cmp-head")?.dataset ?? {};
  if (study && !params.has("study")) params.set("study", study);
  return params;
}

function keep(params, push) {
  const address = `${PAGE}?${params}`;
  history[push ? "pushState" : "replaceState"](null, "", address);
}

function place(part) {
  return document.getElementById(part === "pair" ? "cmp-pair-part" : `cmp-${part}`);
}

// The old part stays, under a thin bar, until the new one is there. Answers whether it came.
async function show(part, request, quietly = false) {
  const target = place(part);
  if (!target) return false;
  asking.get(part)?.abort();
  const control = new AbortController();
  asking.set(part, control);
  target.setAttribute("aria-busy", "true");
  try {
    const reply = await asked(request.address, { ...request, signal: control.signal });
    const html = await reply.text();
    const focused = document.activeElement?.id;
    if (place(part) === target) {
      // A scoring part brings its own frame along.
      if (part === "scoring") target.outerHTML = html;
      else target.innerHTML = html;
    }
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    watch();
    return true;
  } catch (error) {
    if (!quietly && !control.signal.aborted) window.studio?.tell?.(error.message);
    return false;
  } finally {
    if (asking.get(part) === control) target.removeAttribute("aria-busy");
  }
}

function ask(part, params = state(), quietly = false) {
  return show(part, { address: `${PAGE}/part/${part}?${params}` }, quietly);
}

function choose(element, changes, push) {
  const params = state();
  for (const [name, value] of changes) value ? params.set(name, value) : params.delete(name);
  for (const name of (element.dataset.reset || "").split(" ")) params.delete(name);
  keep(params, push);
  ask(element.dataset.part, params);
}

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("a[data-part], button[data-part]");
  if (pressed?.href && (event.ctrlKey || event.metaKey || event.shiftKey)) return; // another tab's
  if (pressed) {
    event.preventDefault();
    if (pressed.dataset.mark) mark(pressed.closest(pressed.dataset.mark));
    choose(pressed, new URLSearchParams(pressed.dataset.set), pressed.dataset.part === "panel");
    return;
  }
  const fold = event.target.closest("[data-fold]");
  if (fold) return fold.closest("tbody").toggleAttribute("open");
  const row = event.target.closest(".cmp-forest tbody tr");
  if (row) return row.querySelector("a").click();
  const act = event.target.closest("[data-act]");
  if (act) return doIt(act);
  const look = event.target.closest("button[data-row]");
  if (look) return lookAt(look.dataset.row);
  const point = event.target.closest("[data-key]");
  if (point) {
    event.preventDefault();
    pressPoint(point);
  }
});

document.addEventListener("change", (event) => {
  const control = event.target.closest("[data-name]");
  if (!control) return;
  let value = control.value;
  if (control.type === "checkbox") {
    const chosen = control.closest("[data-several]").querySelectorAll("input:checked");
    value = [...chosen].map((one) => one.value).join(" ");
  }
  choose(control, [[control.dataset.name, value]], false);
});

window.addEventListener("popstate", () => ask("body"));
window.addEventListener("studio:drawn", () => watch());

function mark(row) {
  for (const other of row.closest("table").rows) other.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
}

// A point of a model shows its pictures; one of a picture shows that picture.
function pressPoint(point) {
  const key = point.dataset.key;
  if (key.startsWith("row:")) return lookAt(key.slice(4));
  const params = state();
  params.set("model", key);
  params.delete("at");
  const there = place("pictures");
  if (!there) params.set("tab", "metric");
  keep(params, !there);
  if (!there) return ask("panel", params);
  for (const other of document.querySelectorAll("#cmp-drawn [data-chosen]")) delete other.dataset.chosen;
  for (const own of document.querySelectorAll("#cmp-drawn [data-key]"))
    if (own.dataset.key === key) own.dataset.chosen = "";
  ask("pictures", params);
}

async function doIt(button) {
  const params = state();
  for (const [name, value] of new URLSearchParams(button.dataset.give)) params.set(name, value);
  if (button.dataset.take) params.set("weights", document.getElementById(button.dataset.take).value);
  button.disabled = true;
  wanted = ["report", "everything"].includes(button.dataset.act) ? button.dataset.act : wanted;
  const address = `${PAGE}/act/${button.dataset.act}?${params}`;
  if (!(await show(button.dataset.into, { address, method: "POST" }))) button.disabled = false;
}

// What runs is looked at every second, also after the server was away; when it has ended, what
// depends on it is asked for.
let wanted = ""; // the file a person asked for here: handed over as soon as it is there
const clocks = new Map(); // part -> when it is looked at next
function watch() {
  for (const { dataset } of document.querySelectorAll("[data-watch]")) {
    const { watch: part, then } = dataset;
    if (!clocks.has(part)) clocks.set(part, setTimeout(() => lookAgain(part, then), 1000));
  }
}

async function lookAgain(part, then) {
  const live = () => document.querySelector(`[data-watch="${part}"]`);
  clocks.delete(part);
  if (!live()) return handOver(); // the page has followed by itself
  if (!(await ask(part, state(), true))) return watch();
  if (live()) return;
  if (then !== part) ask(then);
  handOver();
}

function handOver() {
  const file = wanted && document.querySelector(`[data-made="${wanted}"]`);
  if (file) {
    wanted = "";
    file.click();
  }
}

// One pair, large; the arrows go on to the next.
const dialog = document.getElementById("cmp-pair");
let looked = "";
async function lookAt(row) {
  const before = looked, open = dialog.open;
  looked = row;
  const params = state();
  params.set("row", row);
  if (await ask("pair", params)) {
    if (!open && !dialog.open) dialog.showModal(); // it may have been closed meanwhile
  } else if (looked === row) {
    looked = before; // which the dialog still shows
  }
}

const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: "row", ArrowUp: "-row" };
document.addEventListener("keydown", (event) => {
  if ((event.key === "Enter" || event.key === " ") && event.target.matches("circle[data-key]")) {
    event.preventDefault();
    return pressPoint(event.target);
  }
  const step = STEPS[event.key];
  if (!step || event.target.matches("select, input, textarea")) return;
  const cards = [...document.querySelectorAll("[data-keys] button[data-row]")];
  if (!cards.length) return;
  if (dialog.open) {
    const next = cards[cards.findIndex((card) => card.dataset.row === looked) + (Number(step) || 0)];
    if (next && typeof step === "number") lookAt(next.dataset.row);
    return;
  }
  const at = cards.indexOf(document.activeElement);
  if (at < 0 && !event.target.matches("body, #cmp-grid *, .st-tabs *")) return;
  event.preventDefault();
  const tops = cards.map((card) => card.getBoundingClientRect().top);
  const across = tops.filter((top) => Math.abs(top - tops[0]) < 4).length;
  const by = typeof step === "number" ? step : step === "row" ? across : -across;
  const to = at < 0 ? 0 : at + by;
  if (cards[to]) return cards[to].focus();
  const turn = document.getElementById(to < 0 ? "cmp-back" : "cmp-next");
  if (turn && !turn.disabled) turn.click();
});

// What a point is, in the page's own colours: a browser's own tooltip comes late, and not by keys.
const tip = document.createElement("div");
tip.className = "cmp-tip";
tip.hidden = true;
document.body.append(tip);
function tell(event) {
  const point = event.target.closest?.("circle[aria-label]");
  tip.hidden = !point;
  if (!point) return;
  tip.textContent = point.getAttribute("aria-label");
  const box = point.getBoundingClientRect();
  tip.style.left = `${Math.min(box.left, innerWidth - tip.offsetWidth - 12)}px`;
  tip.style.top = `${box.top > 60 ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
}
for (const name of ["mouseover", "focusin"]) document.addEventListener(name, tell);
watch();
