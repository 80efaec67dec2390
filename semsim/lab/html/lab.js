// The forms of the attack lab: what is chosen becomes text for the server, and nothing else.

const HERE = new URL(".", import.meta.url).pathname.slice(0, -1);

// What the form called `name` holds, as one text, before what else an event gives.
export function read(name, ...others) {
  const form = document.querySelector(`[data-form="${name}"]`);
  const fields = {}, lists = {};
  form.querySelector("input:invalid")?.reportValidity(); // goes to it; the server refuses it, too
  for (const one of form.querySelectorAll("[name]:not([data-list])")) {
    fields[one.name] = one.type === "checkbox" ? one.checked : one.value;
  }
  for (const one of form.querySelectorAll("[data-list]")) {
    const list = (lists[one.dataset.list] ??= {});
    if (one.checked) list[one.value] = changes(form, one.dataset.list, one.value);
  }
  return [JSON.stringify({ fields, lists }), ...others];
}

// Settings of a chosen plug-in that differ from what they began with.
function changes(form, list, item) {
  const found = {};
  for (const section of form.querySelectorAll("[data-of]")) {
    if (section.dataset.of !== list || section.dataset.item !== item) continue;
    for (const one of section.querySelectorAll("[data-setting]")) {
      const value = one.type === "checkbox" ? String(one.checked) : one.value;
      if (value !== one.dataset.default) found[one.dataset.setting] = value;
    }
  }
  return found;
}

// From where nothing has run yet to where it can be chosen.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-plan]");
  if (button) document.querySelector(`#${button.dataset.plan}-tabs [role="tab"]`)?.click();
});

// Listen on `place`, which stays while what is in it may be drawn anew.
export function bind(place) {
  if (place.dataset.bound) return;
  place.dataset.bound = "yes";
  place.addEventListener("change", (event) => {
    const one = event.target;
    if (one.name === "preset") for (const section of place.querySelectorAll('[data-of="attacks"]')) section.remove();
    if (one.dataset.list || one.dataset.setting || one.name === "preset") shown(place);
  });
  place.addEventListener("toggle", () => settings(place), true);
  place.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.card) choose(button, place);
    if ("open" in button.dataset) opened(button);
    if (button.dataset.fetch) fetched(button);
  });
  new MutationObserver(() => shown(place)).observe(place, { childList: true, subtree: true });
  shown(place);
  if (place.querySelector("[data-why], [data-now]")) {
    let seen = now(place) && null;
    addEventListener("studio:looked", ({ detail }) => {
      if (seen && seen !== detail.news) now(place);
      seen = detail.news;
    });
  }
  anew(place);
}

// What has changed since the page was drawn: data sets that have come, pictures that were brought
// in, distractor models that were trained.
async function now(place) {
  const answer = await fetch(`${HERE}/now`).catch(() => null);
  if (!answer?.ok) return;
  const { absent, judges, own, names } = await answer.json();
  brought(place, own);
  for (const field of place.querySelectorAll("[data-free]")) {
    if (field.value === (field.dataset.given ?? "")) field.value = field.dataset.given = names[field.dataset.free];
  }
  for (const why of place.querySelectorAll("[data-why]")) {
    const off = why.dataset.why in absent;
    const tick = why.closest(".lab-choice").querySelector(".lab-tick");
    tick.toggleAttribute("data-off", off);
    tick.querySelector("input").disabled = off;
    why.hidden = !off;
  }
  for (const list of place.querySelectorAll('select[data-now="judges"]')) {
    const known = new Set([...list.options].map((one) => one.value));
    for (const [value, words] of judges) if (!known.has(value)) list.add(new Option(words, value));
  }
}

// Pictures of one's own can be chosen as a folder can; the address may name one to begin with.
function brought(place, own) {
  for (const list of place.querySelectorAll('[data-of-list="datasets"]')) {
    const boxes = () => [...list.querySelectorAll("input")];
    const like = boxes().find((one) => one.value === "folder")?.closest(".lab-choice");
    if (!like) continue;
    const wanted = new URLSearchParams(location.search).get("pictures");
    for (const [item, title, line] of own) {
      if (boxes().some((one) => one.value === item)) continue;
      const made = like.cloneNode(true);
      Object.assign(made.querySelector("input"), { value: item, checked: false });
      made.querySelector("b").textContent = title;
      made.querySelector(".lab-id").textContent = "yours";
      made.querySelector(".lab-line").textContent = line;
      like.before(made);
      if (item.split("/").pop() === wanted) for (const one of boxes()) one.checked = one.value === item;
    }
    if (wanted && !boxes().some((one) => one.value.endsWith(`/${wanted}`))) {
      window.studio?.tell?.(`There are no pictures called ${wanted} any more.`);
    }
  }
}

// What is to be drawn as it is now, and not as it was when the page was made.
async function anew(place) {
  for (const part of place.querySelectorAll("[data-from]")) {
    const answer = await fetch(part.dataset.from).catch(() => null);
    const html = answer?.ok ? await answer.text() : "";
    if (html && html !== part.outerHTML) part.outerHTML = html;
  }
}

function shown(place) {
  pressed(place);
  ready();
  dots(place);
  offered(place);
  settings(place);
}

// Of what hangs on another field of the same plug-in, what goes with that field's value.
function offered(place) {
  for (const list of place.querySelectorAll("select[data-by]")) {
    const by = list.closest("[data-of]").querySelector(`[data-setting="${list.dataset.by}"]`).value;
    const goes = JSON.parse(list.dataset.offers)[by] ?? [];
    for (const one of list.options) one.hidden = one.disabled = !goes.includes(one.value);
    if (!goes.includes(list.value)) list.value = goes[0];
  }
}

// A button can be pressed as soon as somebody listens, a card as soon as the form it fills does.
function ready() {
  const listens = (one) => Boolean(one?.closest("[data-bound]"));
  for (const one of document.querySelectorAll("[data-fetch], [data-open]")) one.disabled = !listens(one);
  for (const card of document.querySelectorAll("[data-card]:not([data-off])")) {
    const { form } = JSON.parse(card.dataset.card);
    card.disabled = !(listens(card) && listens(document.querySelector(`[data-form="${form}"]`)));
  }
}

// Which card was taken, also where the cards are drawn anew.
function pressed(cards) {
  const now = Number(cards.dataset.pressed ?? 0);
  for (const [index, one] of cards.querySelectorAll("[data-card]").entries()) {
    const said = String(index === now);
    if (one.getAttribute("aria-pressed") !== said) one.setAttribute("aria-pressed", said);
  }
}

// A dot where what is above and what is on the left are both chosen.
function dots(place) {
  const chosen = (list) => new Set([...place.querySelectorAll(`[data-list="${list}"]:checked`)].map((one) => one.value));
  for (const table of place.querySelectorAll("[data-across]")) {
    const rows = chosen(table.dataset.down), columns = chosen(table.dataset.across);
    let some = false;
    for (const cell of table.querySelectorAll("td[data-row]")) {
      const on = rows.has(cell.dataset.row) && columns.has(cell.dataset.column);
      const sign = !on ? "" : "never" in cell.dataset ? "–" : "●";
      cell.classList.toggle("lab-on", sign === "●");
      if (cell.textContent !== sign) cell.textContent = sign;
      some ||= sign === "●";
    }
    for (const told of place.querySelectorAll("[data-undotted]")) if (told.hidden !== some) told.hidden = some;
  }
}

// Everything a list has, or what most people need and what is chosen.
function opened(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  button.dataset.words ??= button.textContent;
  button.textContent = open ? "Fewer" : button.dataset.words;
  const around = button.closest("fieldset") ?? button.parentElement;
  around.classList.toggle("lab-all", open);
}

// Take over what a card stands for, and ask what it takes.
function choose(button, cards) {
  const card = JSON.parse(button.dataset.card);
  const place = document.querySelector(`[data-form="${card.form}"]`);
  cards.dataset.pressed = [...cards.querySelectorAll("[data-card]")].indexOf(button);
  pressed(cards);
  for (const section of place.querySelectorAll("[data-of]")) section.remove();
  for (const [list, items] of Object.entries(card.lists)) {
    for (const one of place.querySelectorAll(`[data-list="${list}"]`)) {
      one.checked = items.includes(one.value) || "fixed" in one.dataset;
      if (one.checked) one.closest("[data-more]")?.removeAttribute("data-more");
    }
  }
  for (const [name, value] of Object.entries(card.fields)) {
    for (const one of place.querySelectorAll(`[name="${name}"]`)) {
      if (one.type === "checkbox") one.checked = value === "true";
      else one.value = value;
    }
  }
  shown(place);
  document.getElementById(card.then)?.click();
}

// The settings of what is chosen, while they are looked at.
async function settings(place) {
  const more = place.querySelector("[data-settings]");
  if (!more?.open) return;
  const preset = place.querySelector('[name="preset"]')?.value ?? "";
  for (const list of more.dataset.settings.split(" ")) {
    const wanted = [...place.querySelectorAll(`[data-list="${list}"]:checked`)].map((one) => one.value);
    for (const section of more.querySelectorAll(`[data-of="${list}"]`)) {
      if (!wanted.includes(section.dataset.item)) section.remove();
    }
    for (const item of wanted) await section(more, list, item, preset);
  }
}

async function section(more, list, item, preset) {
  const there = () => [...more.querySelectorAll("[data-of]")].some((one) => one.dataset.of === list && one.dataset.item === item);
  const key = `${list} ${item} ${preset}`;
  more.waiting ??= new Set();
  if (there() || more.waiting.has(key)) return;
  more.waiting.add(key);
  const asked = new URLSearchParams({ list, item, preset });
  const answer = await fetch(`${HERE}/settings?${asked}`).catch(() => null);
  const html = answer?.ok ? await answer.text() : "";
  more.waiting.delete(key);
  if (!answer?.ok) window.studio?.tell?.("The settings did not come. Open them again.");
  else if (!there()) more.querySelector("[data-plugins]").insertAdjacentHTML("beforeend", html);
}

// Have a data set fetched, and say how that goes.
async function fetched(button) {
  const why = button.parentElement;
  const address = `${HERE}/fetch/${encodeURIComponent(button.dataset.fetch)}`;
  const asked = async (options) => {
    const answer = await fetch(address, options).catch(() => null);
    const told = await answer?.json().catch(() => null);
    return told && !answer.ok ? { live: false, words: told.error } : told;
  };
  let told = await asked({ method: "POST" });
  if (!told) return window.studio?.tell?.("The studio does not answer. Try again.");
  for (;;) {
    if (told?.there) return now(why.closest("[data-form]"));
    if (told) why.textContent = told.words;
    if (told?.live === false) return;
    await new Promise((go) => setTimeout(go, 2000));
    told = await asked(); // null while the server is away
  }
}
