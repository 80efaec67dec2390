/* The page Pictures: what is dropped is sent and looked at, a plan is kept, a set may go. */

import { rooted } from "./root.js";
import { ask, bundled, chosen, dropped, send } from "./sending.js";

const HOME = rooted("/studio/pictures");
const LOOK_EVERY = 800; // milliseconds
const go = (address) => location.assign(address);

function problemIn(place, problem) {
  const shown = place.querySelector("[data-problem]");
  shown.textContent = problem.message;
  shown.hidden = false;
  place.addEventListener("input", () => { shown.hidden = true; }, { once: true });
}

function zone(place) {
  const find = (name) => place.querySelector(`[data-${name}]`);
  const sending = find("sending"), bar = place.querySelector("progress");
  let stop = null;

  async function take(files) {
    if (stop || !files.length) return;
    stop = new AbortController();
    let upload = "";
    find("problem").hidden = true;
    sending.hidden = false;
    bar.removeAttribute("value");
    find("told").textContent = "Getting ready";
    const told = (words, share) => {
      find("told").textContent = words;
      if (share !== undefined) bar.value = share;
    };
    try {
      const bundle = bundled(files, place.dataset.kinds.split(" "));
      await send(bundle, told, stop.signal, (id) => { upload = id; });
      if (place.dataset.scoresOf) {
        go(`${HOME}/scores?${new URLSearchParams({ study: place.dataset.scoresOf, upload })}`);
        return;
      }
      const { job } = await ask("/look", { json: { upload, again: place.dataset.again || "", adds: place.dataset.adds || "" } });
      go(`${HOME}/plan/${job}`);
    } catch (problem) {
      if (stop.signal.aborted && upload) await ask(`/uploads/${upload}`, { method: "DELETE" }).catch(() => {});
      else if (!stop.signal.aborted) problemIn(place, problem);
      sending.hidden = true;
      stop = null;
    }
  }

  for (const kind of ["files", "folder"]) {
    const input = place.querySelector(`[data-input=${kind}]`);
    if (!input) continue;
    place.querySelector(`[data-pick=${kind}]`).onclick = () => input.click();
    input.onchange = () => { take(chosen(input)); input.value = ""; };
  }
  find("cancel").onclick = () => stop && stop.abort();
  place.ondragover = (event) => { event.preventDefault(); place.dataset.over = ""; };
  place.ondragleave = () => { delete place.dataset.over; };
  place.ondrop = async (event) => {
    event.preventDefault();
    delete place.dataset.over;
    take(await dropped(event.dataTransfer));
  };
}

async function watch(place) {
  const id = place.dataset.watch;
  for (;;) {
    await new Promise((wake) => setTimeout(wake, LOOK_EVERY));
    const now = await ask(`/jobs/${id}`).catch(({ status }) => ({ status }));
    if ([401, 404].includes(now.status)) return location.reload(); // signed out, or it is gone
    if (!("live" in now)) continue;
    const shown = place.querySelector("[data-status]");
    if (shown.innerHTML !== now.html) shown.innerHTML = now.html;
    if (!now.live) return now.to ? location.replace(now.to) : location.reload();
  }
}

function keeping(form) {
  form.onsubmit = async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const look = form.getAttribute("data-keep"); // form.dataset is the field of that name
      const words = Object.fromEntries([...form.querySelectorAll("[data-word]")].map((one) => [one.dataset.word, one.value]));
      const { job } = await ask("/keep", { json: { look, words, ...Object.fromEntries(new FormData(form)) } });
      go(`${HOME}/plan/${job}`);
    } catch (problem) {
      problemIn(form, problem);
      button.disabled = false;
    }
  };
}

/* A table of scores: the columns that are chosen, by the names they are given. */
function scores(form) {
  form.onsubmit = async (event) => {
    event.preventDefault();
    const metrics = {}, study = form.dataset.scores;
    try {
      for (const row of form.querySelectorAll("[data-column]")) {
        const [keep, name] = row.querySelectorAll("input"), leaks = row.querySelector("select").value;
        if (!keep.checked) continue;
        if (!leaks) throw new Error(`Say of ${name.value} whether higher or lower values leak more.`);
        metrics[name.value] = { column: row.dataset.column, leaks };
      }
      if (!Object.keys(metrics).length) throw new Error("Choose a column to keep.");
      const { said } = await ask("/scores/keep", { json: { study, upload: form.dataset.upload, metrics } });
      window.studio.tellNext(said);
      go(`${HOME}/scores?${new URLSearchParams({ study })}`);
    } catch (problem) {
      problemIn(form, problem);
    }
  };
}

async function act(button, path, json, told, then = HOME) {
  button.disabled = true;
  try {
    await ask(path, json ? { json } : { method: "DELETE" });
    window.studio.tellNext(told);
    go(then);
  } catch (problem) {
    window.studio.tell(problem.message);
    button.disabled = false;
  }
}

for (const place of document.querySelectorAll("[data-drop]")) zone(place);
for (const place of document.querySelectorAll("[data-watch][data-going]")) watch(place);
for (const form of document.querySelectorAll("[data-keep]")) keeping(form);
for (const form of document.querySelectorAll("[data-scores]")) scores(form);

// What follows changes may be drawn anew.
function wire() {
  for (const box of document.querySelectorAll("[data-submits]")) box.onchange = () => box.form.requestSubmit();
  for (const box of document.querySelectorAll("[data-class]")) {
    box.onchange = () => {
      if (box.value) go(`${HOME}/class?${new URLSearchParams({ dataset: box.dataset.class, name: box.value })}`);
    };
  }
  for (const button of document.querySelectorAll("[data-stop]")) {
    button.onclick = () => {
      button.disabled = true;
      ask(`/jobs/${button.closest("[data-watch]").dataset.watch}/stop`, { json: {} }).catch(() => {});
    };
  }
  for (const button of document.querySelectorAll("[data-resume]")) {
    button.onclick = () => act(button, `/jobs/${button.dataset.resume}/resume`, {}, "It goes on.", location.href);
  }
  for (const button of document.querySelectorAll("[data-discard]")) {
    button.onclick = async () => {
      const text = "What was sent is removed here; your own files stay as they are.";
      if (!(await window.studio.ask({ title: "Discard these files?", text, yes: "Discard them" }))) return;
      act(button, "/discard", { look: button.dataset.discard }, "Discarded: nothing of it is kept.");
    };
  }
  for (const button of document.querySelectorAll("[data-forget]")) {
    button.onclick = () => act(button, `/uploads/${button.dataset.forget}`, null, "Discarded: nothing of it is kept.");
  }
  for (const button of document.querySelectorAll("[data-remove]")) {
    button.onclick = async () => {
      const { remove: metric, study } = button.dataset;
      const text = "Its scores of this study are forgotten; the file they came from stays yours.";
      if (!(await window.studio.ask({ title: `Remove ${metric}?`, text, yes: "Remove" }))) return;
      act(button, "/scores/remove", { study, metric }, `${metric} is removed.`, location.href);
    };
  }
  for (const [mark, path, what, text] of [
    ["delete", "/delete", "set", "Its pictures are removed from the data folder and cannot be brought back."],
    ["deleteBrought", "/delete-brought", "", "They are removed from the data folder. Sets that came with them or that attacks made of them stay; a campaign whose pictures are gone can no longer be shown on Reconstruct."],
  ]) {
    const named = mark.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
    for (const button of document.querySelectorAll(`[data-${named}]`)) {
      button.onclick = async () => {
        const { name, holds = what, [mark]: key } = button.dataset;
        const sure = await window.studio.ask({ title: `Delete ${name}?`, text, type: name, yes: `Delete the ${holds}` });
        if (sure) act(button, path, { holds, key, typed: name }, `${name}: deleted.`);
      };
    }
  }
}
wire();
addEventListener("studio:drawn", wire);
