// What the labelling widget looks like: builds its elements once and changes their text.

import { CANDIDATE_CODES, COLUMNS, usualLetter } from "./keys.js";

const TEMPLATE = `
<header class="sl-bar">
  <div class="sl-title"><h1></h1></div>
  <div class="sl-progress">
    <div class="sl-track" role="progressbar" aria-label="Your progress" aria-valuemin="0"><i></i></div>
    <p class="sl-count"></p>
  </div>
  <p class="sl-status" role="status" aria-live="polite"></p>
  <div class="sl-tools">
    <button type="button" class="sl-undo" aria-keyshortcuts="Backspace Control+Z">
      <span aria-hidden="true">↶</span> Undo</button>
    <button type="button" class="sl-help-open" aria-label="Keyboard help" aria-keyshortcuts="?">?</button>
  </div>
</header>
<div class="sl-notice" role="alert" hidden>
  <p></p>
  <button type="button" class="sl-again">Try again</button>
  <button type="button" class="sl-hide">Hide</button>
</div>
<div class="sl-work">
  <div class="sl-stage" tabindex="-1">
    <div class="sl-pictures"></div>
    <p class="sl-was" aria-live="polite"></p>
  </div>
  <div class="sl-panel">
    <p class="sl-banner" hidden></p>
    <h2 class="sl-question"></h2>
    <div class="sl-answers" role="group" aria-label="Answers"></div>
    <div class="sl-feedback" hidden>
      <p class="sl-told" role="status" aria-live="polite"></p>
      <button type="button" class="sl-go-on" aria-keyshortcuts="Enter">Go on</button>
    </div>
    <p class="sl-hint">Press the key on the button, or click. <kbd>?</kbd> shows all keys.</p>
  </div>
</div>
<div class="sl-message" tabindex="-1" hidden>
  <p class="sl-mark" aria-hidden="true"></p><h2></h2><p class="sl-why"></p>
  <p class="sl-code" hidden></p>
  <a class="sl-link" hidden></a>
</div>
<footer class="sl-foot">
  <span class="sl-who"></span>
  <form method="post" action="/sign-out"><button type="submit">Sign out</button></form>
</footer>
<dialog class="sl-help" aria-labelledby="sl-help-title">
  <h2 id="sl-help-title">Keys</h2>
  <dl></dl>
  <details class="sl-change"><summary>Change keys</summary>
    <p>Choose an answer, then press its new key. The two swap where the key was in use.</p>
    <div class="sl-changes" role="group" aria-label="Answers and their keys"></div>
    <p class="sl-changed" role="status" aria-live="polite"></p>
    <button type="button" class="sl-reset">Back to the usual keys</button>
  </details>
  <label><input type="checkbox" class="sl-shortcuts" checked> Answer with single keys</label>
  <form method="dialog"><button class="sl-close" autofocus>Close</button></form>
</dialog>`;

const MARKS = { finished: "✓", paused: "❚❚", closed: "✓", waiting: "…", loading: "", trouble: "!" };

// A class name as people read it.
export const readable = (name) => name.replaceAll("_", " ");

export class View {
  #letter = usualLetter;
  #buttons = new Map(); // code → button
  #keys = new Map(); // code → {answer, label, reason}: what every item offers
  #lists = false; // whether items offer classes of a list, too

  constructor(host) {
    host.innerHTML = TEMPLATE;
    this.host = host;
    this.$ = (selector) => host.querySelector(selector);
  }

  // onAnswer(code, event): a button was pressed.
  build(study, onAnswer) {
    this.$(".sl-question").textContent = study.question;
    this.$(".sl-who").textContent = `Signed in as ${study.annotator}`;
    this.#keys = new Map(study.keys.map((key) => [key.code, key]));
    this.#lists = study.lists;
    this.host.dataset.beside = study.beside ? "yes" : "no";
    this.use(study);
    this.#banner(study);
    const answers = this.$(".sl-answers");
    const add = (codes, name) => {
      const box = document.createElement("div");
      box.className = name;
      box.append(...codes.map((code) => this.#button(code, onAnswer)));
      answers.append(box);
    };
    if (study.lists) {
      add(CANDIDATE_CODES, "sl-grid");
      this.$(".sl-grid").style.setProperty("--columns", COLUMNS);
    }
    const whole = study.keys.length > 2 ? "sl-scale" : "sl-whole"; // numbers from one end to the other
    add([...this.#keys.keys()], study.lists ? "sl-none" : whole);
    for (const { code, answer, label } of this.#keys.values()) this.#say(code, answer, label);
    this.#listKeys();
  }

  // What the researcher may change while the study runs.
  use({ name, image_scale, interpolation, background }) {
    this.$("h1").textContent = name;
    this.scale = image_scale;
    Object.assign(this.host.dataset, { interpolation, background });
  }

  #banner({ step, place }) {
    const banner = this.$(".sl-banner");
    banner.hidden = step !== "practice";
    const where = place ? ` · Step ${place[0]} of ${place[1]}` : "";
    banner.textContent = `Practice: these answers do not count${where}`;
  }

  // What an answer to a practice item should have been; no text: nothing to be said.
  feedback(text, right) {
    const [box, told, button] = [".sl-feedback", ".sl-told", ".sl-go-on"].map(this.$);
    const there = Boolean(text);
    box.hidden = !there;
    button.hidden = right === undefined;
    box.dataset.right = right ?? "";
    told.textContent = there && !button.hidden ? `${text} Press Enter or any answer to go on.` : text;
    this.$(".sl-answers").inert = there;
    this.$(".sl-hint").hidden = there;
    if (!button.hidden) button.focus({ preventScroll: true });
  }

  #button(code, onAnswer) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.code = code;
    button.innerHTML = "<kbd></kbd><span></span>";
    button.addEventListener("click", (event) => onAnswer(code, event));
    this.#buttons.set(code, button);
    return button;
  }

  #say(code, answer, label) {
    const button = this.#buttons.get(code);
    if (!button) return;
    button.dataset.answer = answer;
    button.lastChild.textContent = label;
    button.hidden = !label;
    button.setAttribute("aria-keyshortcuts", this.#letter(code));
  }

  // The usual codes of this task, in the order of the screen.
  get codes() {
    return [...this.#buttons.keys()];
  }

  setLetters(letter) {
    this.#letter = letter;
    for (const [code, button] of this.#buttons) {
      button.firstChild.textContent = letter(code);
      button.setAttribute("aria-keyshortcuts", letter(code));
    }
    this.#listKeys();
    this.#listChanges();
  }

  // onChoose(code): an answer was chosen whose key shall change.
  onChange(onChoose, onReset) {
    this.$(".sl-changes").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) onChoose(button.dataset.change);
    });
    this.$(".sl-reset").addEventListener("click", onReset);
  }

  #listChanges() {
    const label = (code) => this.#keys.get(code)?.label ?? `answer ${CANDIDATE_CODES.indexOf(code) + 1}`;
    this.$(".sl-changes").replaceChildren(...this.codes.map((code) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.change = code;
      const key = Object.assign(document.createElement("kbd"), { textContent: this.#letter(code) });
      button.append(key, ` ${label(code)}`);
      return button;
    }));
  }

  // Say which answer waits for its key, and what came of it.
  changing(code, words) {
    for (const button of this.$(".sl-changes").children) {
      button.setAttribute("aria-pressed", button.dataset.change === code);
    }
    this.$(".sl-changed").textContent = words;
  }

  #listKeys() {
    const letters = (codes) => codes.map(this.#letter).join(" ");
    const listed = this.#lists ? [0, 1, 2, 3] : [];
    const rows = [
      ...listed.map((row) => [
        letters(CANDIDATE_CODES.slice(row * COLUMNS, (row + 1) * COLUMNS)),
        `row ${row + 1} of the answers`,
      ]),
      ...[...this.#keys.values()].map(({ code, label }) => [this.#letter(code), label]),
    ];
    rows.push(["Backspace", "Undo, up to 10 back (also Ctrl+Z)"], ["?", "This help"]);
    this.$("dl").replaceChildren(...rows.flatMap(([keys, what]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.append(...keys.split(" ").map((key) => Object.assign(document.createElement("kbd"), { textContent: key })));
      dd.textContent = what;
      return [dt, dd];
    }));
  }

  answerOf(code) {
    const button = this.#buttons.get(code);
    return button && !button.hidden ? button.dataset.answer : undefined;
  }

  // An answer in the words of its button.
  said({ answer, reason }) {
    const same = (key) => key.answer === answer && (key.reason ?? null) === (reason ?? null);
    return [...this.#keys.values()].find(same)?.label ?? readable(answer);
  }

  // Why the answer of a key is given, where the key says so.
  reasonOf(code) {
    return this.#keys.get(code)?.reason;
  }

  // Returns what is on the screen, in CSS pixels, for the record.
  show(item, position, total, was) {
    this.$(".sl-work").hidden = false;
    this.$(".sl-message").hidden = true;
    this.$(".sl-hint").hidden = false;
    CANDIDATE_CODES.forEach((code, i) => {
      if (this.#lists) this.#say(code, item.candidates[i] ?? "", readable(item.candidates[i] ?? ""));
    });
    const parts = item.pictures.length > 1 ? ["original", "reconstruction"] : [""];
    item.pictures.forEach((picture, i) => {
      picture.alt = `Stimulus ${position} of ${total}${parts[i] && `, ${parts[i]}`}`;
      picture.draggable = false;
    });
    this.$(".sl-pictures").replaceChildren(...item.pictures);
    this.#markFormer(was);
    return this.fit(item);
  }

  // The original alone; `reveal` puts what was made of it in its place.
  showFirst({ pictures }) {
    this.$(".sl-pictures").replaceChildren(pictures[0]);
    this.tell("This is the original. What was made of it comes next.");
  }

  reveal({ pictures }, was) {
    this.$(".sl-pictures").replaceChildren(pictures[1]);
    this.#markFormer(was);
  }

  #markFormer(was) {
    for (const button of this.#buttons.values()) {
      const former = Boolean(was) && button.dataset.answer === was.answer && !button.hidden
        && (this.reasonOf(button.dataset.code) ?? null) === (was.reason ?? null);
      button.classList.toggle("sl-former", former);
    }
    this.$(".sl-was").textContent = was ? `You answered “${this.said(was)}”. Answer again.` : "";
  }

  // A few words on the last key, until the next picture.
  tell(words) {
    this.$(".sl-was").textContent = words;
  }

  // Whole multiples (or whole fractions) of the picture's own pixels only: anything else would
  // change what people see. `available` leaves room for every picture side by side.
  fit(item) {
    const stage = this.$(".sl-stage");
    const gap = 16;
    const count = item.pictures.length;
    const width = (stage.clientWidth - gap * (count + 1)) / count;
    const height = stage.clientHeight - gap * 2;
    const [natural] = item.pictures;
    const room = Math.min(width / natural.naturalWidth, height / natural.naturalHeight, this.scale);
    const scale = room >= 1 ? Math.floor(room) : 1 / Math.ceil(1 / room);
    for (const picture of item.pictures) {
      picture.style.width = `${picture.naturalWidth * scale}px`;
      picture.style.height = `${picture.naturalHeight * scale}px`;
    }
    const { interpolation, background } = this.host.dataset;
    return { interpolation, background, scale, css_px: [natural.naturalWidth * scale, natural.naturalHeight * scale] };
  }

  blank() {
    this.$(".sl-pictures").replaceChildren();
  }

  flash(code) {
    const button = this.#buttons.get(code);
    button.classList.remove("sl-pressed");
    requestAnimationFrame(() => button.classList.add("sl-pressed"));
    setTimeout(() => button.classList.remove("sl-pressed"), 160);
  }

  // link: {href, text}; code: what proves that all is done.
  message(kind, title, why, { link, code } = {}) {
    this.blank();
    this.$(".sl-work").hidden = true;
    const box = this.$(".sl-message");
    box.hidden = false;
    box.dataset.kind = kind;
    box.querySelector(".sl-mark").textContent = MARKS[kind] ?? "";
    box.querySelector("h2").textContent = title;
    box.querySelector(".sl-why").textContent = why;
    const anchor = box.querySelector(".sl-link");
    anchor.hidden = !link;
    if (link) Object.assign(anchor, { href: link.href, textContent: link.text });
    const proof = box.querySelector(".sl-code");
    proof.hidden = !code;
    proof.textContent = code ? `Your code, in case somebody asks for it: ${code}` : "";
  }

  progress(done, total, left) {
    const track = this.$(".sl-track");
    track.setAttribute("aria-valuemax", total);
    track.setAttribute("aria-valuenow", done);
    track.firstChild.style.width = `${total ? (100 * done) / total : 0}%`;
    this.$(".sl-count").textContent = `${done} of ${total}${left && ` · ${left}`}`;
  }

  status(text, kind) {
    const line = this.$(".sl-status");
    if (line.textContent !== text) line.textContent = text;
    line.dataset.kind = kind;
  }

  notice(text) {
    const box = this.$(".sl-notice");
    box.hidden = !text;
    box.querySelector("p").textContent = text;
  }
}
