// What the labelling widget looks like: builds its elements once and changes their text.

import { CANDIDATE_CODES, COLUMNS, VIEW_CODE, usualLetter } from "./keys.js";
import { rooted } from "./root.js";
import { fit } from "./shape.js";
import { wording } from "./words.js";

const TEMPLATE = `
<div class="sl-page">
<header class="sl-bar">
  <div class="sl-title"><h1></h1></div>
  <div class="sl-progress">
    <div class="sl-track" role="progressbar" aria-valuemin="0" data-label="label.progress"><i></i></div>
    <p class="sl-count"></p>
  </div>
  <p class="sl-status" role="status" aria-live="polite"></p>
  <div class="sl-tools">
    <button type="button" class="sl-view" data-title="label.view_hint"><kbd></kbd> <span data-say="label.view"></span></button>
    <button type="button" class="sl-undo" aria-keyshortcuts="Backspace Control+Z">
      <span aria-hidden="true">↶</span> <span data-say="label.undo"></span></button>
    <button type="button" class="sl-help-open" aria-keyshortcuts="?" data-say="label.how"></button>
  </div>
</header>
<div class="sl-notice" role="alert" hidden>
  <p></p>
  <button type="button" class="sl-again" data-say="label.again"></button>
  <button type="button" class="sl-hide" data-say="label.hide"></button>
</div>
<div class="sl-work">
  <div class="sl-stage" tabindex="-1">
    <div class="sl-pictures"></div>
  </div>
  <div class="sl-panel">
    <p class="sl-banner" hidden></p>
    <div class="sl-asked">
      <h2 class="sl-question"></h2>
      <p class="sl-was" translate="no" aria-live="polite"></p>
    </div>
    <div class="sl-answers" role="group" data-label="label.answers"></div>
    <div class="sl-feedback" hidden>
      <p class="sl-told" translate="no" role="status" aria-live="polite"></p>
      <button type="button" class="sl-go-on" aria-keyshortcuts="Enter" data-say="label.practice_go"></button>
    </div>
    <p class="sl-hint"></p>
  </div>
</div>
<div class="sl-message" tabindex="-1" role="status" hidden>
  <p class="sl-mark" aria-hidden="true"></p><h2></h2><p class="sl-why"></p>
  <p class="sl-code" hidden></p>
  <a class="sl-link" hidden></a>
</div>
<footer class="sl-foot">
  <span class="sl-who"></span>
  <button type="button" class="sl-own-link" data-say="label.link"></button>
  <form method="post" action="${rooted("/sign-out")}"><button type="submit" data-say="label.sign_out"></button></form>
</footer>
<dialog class="sl-dialog sl-back" aria-labelledby="sl-back-title">
  <h2 id="sl-back-title" data-say="label.link"></h2>
  <p data-say="label.link_why"></p>
  <p class="sl-address" id="sl-address"></p>
  <form method="dialog">
    <button type="button" class="sl-copy" data-say="label.copy"></button>
    <button class="sl-close" data-say="label.close"></button>
    <span class="sl-copied" role="status"></span>
  </form>
</dialog>
<dialog class="sl-dialog sl-help" aria-labelledby="sl-help-title">
  <h2 id="sl-help-title" tabindex="-1" autofocus data-say="label.instructions"></h2>
  <div class="sl-about"></div>
  <h3 data-say="label.rules"></h3>
  <ul class="sl-rules"></ul>
  <div class="sl-of-keys">
  <h3 data-say="label.keys"></h3>
  <dl translate="no"></dl>
  <details class="sl-change"><summary data-say="label.change"></summary>
    <p data-say="label.change_why"></p>
    <div class="sl-changes" translate="no" role="group" data-label="label.change_answers"></div>
    <p class="sl-changed" role="status" aria-live="polite"></p>
    <button type="button" class="sl-reset" data-say="label.change_reset"></button>
  </details>
  <label><input type="checkbox" class="sl-shortcuts" checked> <span data-say="label.single"></span></label>
  </div>
  <form method="dialog"><button class="sl-close" data-say="label.close"></button></form>
</dialog>
</div>`;

const MARKS = { finished: "✓", paused: "❚❚", closed: "✓", waiting: "…", loading: "", trouble: "!" };
const touched = matchMedia("(pointer: coarse)"); // by who has no keys

export class View {
  #letter = usualLetter;
  #buttons = new Map(); // code → button
  #keys = new Map(); // code → {answer, label, reason}: what every item offers
  #lists = false; // whether items offer classes of a list, too
  #classes = {}; // what classes are shown as, where that is not their name
  #lang = "en";
  #none = "none";
  #shown = []; // the pictures on the screen

  // texts: what people read, by name.
  constructor(host, texts) {
    host.innerHTML = TEMPLATE;
    this.host = host;
    this.$ = (selector) => host.querySelector(selector);
    this.say = wording(texts);
    this.#fill();
  }

  #fill() {
    const named = (what, put) =>
      this.host.querySelectorAll(`[data-${what}]`).forEach((one) => put(one, this.say(one.dataset[what])));
    named("say", (one, text) => { one.textContent = text; });
    named("label", (one, text) => one.setAttribute("aria-label", text));
    named("title", (one, text) => { one.title = text; });
    this.$(".sl-hint").textContent = this.say("label.hint", { key: "?" });
  }

  // onAnswer(code, event): a button was pressed.
  build(study, onAnswer) {
    this.$(".sl-question").textContent = study.question;
    this.$(".sl-who").textContent = study.annotator ? this.say("label.who", { name: study.annotator }) : "";
    this.#keys = new Map(study.keys.map((key) => [key.code, key]));
    this.#lists = study.lists;
    this.#classes = study.classes;
    this.#lang = study.lang;
    this.#none = study.none;
    this.host.dataset.beside = study.beside ? "yes" : "no";
    this.use(study);
    this.#banner(study);
    this.#instruct(study);
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
    if (study.lists) answers.append(this.#noneTitle());
    add([...this.#keys.keys()], study.lists ? "sl-none" : whole);
    for (const { code, answer, label } of this.#keys.values()) this.#say(code, answer, label);
    this.#listKeys();
  }

  // What the researcher may change while the study runs.
  use({ name, image_scale, background }) {
    this.$("h1").textContent = name;
    this.scale = image_scale;
    this.host.dataset.background = background;
  }

  #noneTitle() {
    const line = document.createElement("p");
    line.className = "sl-none-title";
    const title = Object.assign(document.createElement("strong"), { textContent: this.say("label.none") });
    line.append(title, " ", this.say("label.none_why"));
    return line;
  }

  // What was read before the first picture can be read again.
  #instruct({ about, rules }) {
    const paragraphs = about.replaceAll("\r\n", "\n").split("\n\n").filter((part) => part.trim());
    const put = (selector, tag, texts) =>
      this.$(selector).replaceChildren(
        ...texts.map((text) => Object.assign(document.createElement(tag), { textContent: text.trim() })),
      );
    put(".sl-about", "p", paragraphs);
    put(".sl-rules", "li", rules);
  }

  #banner({ step, place }) {
    const banner = this.$(".sl-banner");
    banner.hidden = step !== "practice";
    const where = place ? ` · ${this.say("label.practice_step", { n: place[0], m: place[1] })}` : "";
    banner.textContent = this.say("label.practice") + where;
  }

  // What an answer to a practice item should have been; no text: nothing to be said.
  feedback(text, right) {
    const [box, told, button] = [".sl-feedback", ".sl-told", ".sl-go-on"].map(this.$);
    const there = Boolean(text);
    box.hidden = !there;
    button.hidden = right === undefined;
    box.dataset.right = right ?? "";
    told.textContent = there && !button.hidden && !touched.matches ? `${text} ${this.say("label.practice_next")}` : text;
    this.$(".sl-answers").inert = there;
    this.$(".sl-hint").hidden = there;
    if (!button.hidden) button.focus({ preventScroll: true });
  }

  #button(code, onAnswer) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.code = code;
    button.translate = false; // the words of answers stay what they are
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

  // The usual codes of this task, in the order of the screen; the last one is no answer.
  get codes() {
    return [...this.#buttons.keys(), VIEW_CODE];
  }

  setLetters(letter) {
    this.#letter = letter;
    for (const [code, button] of [...this.#buttons, [VIEW_CODE, this.$(".sl-view")]]) {
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
    const label = (code) => {
      if (code === VIEW_CODE) return this.say("label.view");
      return this.#keys.get(code)?.label ?? this.say("label.change_answer", { n: CANDIDATE_CODES.indexOf(code) + 1 });
    };
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
        this.say("label.keys_row", { n: row + 1 }),
      ]),
      ...[...this.#keys.values()].map((key) => [this.#letter(key.code), this.said(key)]),
    ];
    rows.push(
      [this.#letter(VIEW_CODE), this.say("label.keys_view")],
      ["Backspace", this.say("label.keys_undo")],
      ["?", this.say("label.keys_help")],
    );
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
    const label = [...this.#keys.values()].find(same)?.label;
    if (answer !== this.#none) return label ?? this.readable(answer);
    return label ? this.say("label.none_said", { reason: label }) : this.say("label.none");
  }

  // A class as people read it.
  readable(name) {
    return Object.hasOwn(this.#classes, name) ? this.#classes[name] : name.replaceAll("_", " ");
  }

  // In the order of what is read, where that is not the order of their names.
  #inOrder(candidates) {
    if (!Object.keys(this.#classes).length) return candidates;
    const alphabet = new Intl.Collator(this.#lang);
    return [...candidates].sort((a, b) => alphabet.compare(this.readable(a), this.readable(b)));
  }

  // Why the answer of a key is given, where the key says so.
  reasonOf(code) {
    return this.#keys.get(code)?.reason;
  }

  // Returns what is on the screen, in CSS pixels, for the record. view: how it is drawn.
  show(item, position, total, was, view) {
    const box = this.$(".sl-message");
    const held = box.contains(document.activeElement);
    this.$(".sl-work").hidden = false;
    box.hidden = true;
    if (held) this.focus();
    this.$(".sl-hint").hidden = false;
    const offered = this.#lists ? this.#inOrder(item.candidates) : [];
    CANDIDATE_CODES.forEach((code, i) => {
      if (this.#lists) this.#say(code, offered[i] ?? "", this.readable(offered[i] ?? ""));
    });
    const parts = item.pictures.length > 1 ? ["label.original", "label.reconstruction"] : [];
    item.pictures.forEach((picture, i) => {
      const part = parts[i] ? `, ${this.say(parts[i])}` : "";
      picture.alt = this.say("label.stimulus", { n: position, total }) + part;
      picture.draggable = false;
    });
    this.#markFormer(was);
    this.#put(item.pictures);
    return this.draw(item, view);
  }

  // The original alone; `reveal` puts what was made of it in its place.
  showFirst(item, view) {
    this.#put([item.pictures[0]]);
    this.draw(item, view);
    this.tell(this.say("label.first"));
  }

  reveal(item, was, view) {
    this.#put([item.pictures[1]]);
    this.#markFormer(was);
    return this.draw(item, view);
  }

  #put(pictures) {
    this.#shown = pictures;
    this.$(".sl-pictures").replaceChildren(...pictures.map((picture) => {
      const figure = document.createElement("div");
      figure.className = "sl-figure";
      const small = document.createElement("canvas");
      small.className = "sl-small";
      small.setAttribute("aria-hidden", "true");
      figure.append(picture, small);
      return figure;
    }));
  }

  #markFormer(was) {
    for (const button of this.#buttons.values()) {
      const former = Boolean(was) && button.dataset.answer === was.answer && !button.hidden
        && (this.reasonOf(button.dataset.code) ?? null) === (was.reason ?? null);
      button.classList.toggle("sl-former", former);
    }
    this.$(".sl-was").textContent = was ? this.say("label.was", { answer: this.said(was) }) : "";
  }

  // A few words on the last key, until the next picture.
  tell(words) {
    this.$(".sl-was").textContent = words;
  }

  // Draw what is shown in a view. All pictures of an item have one size, also where they come one
  // after the other.
  draw(item, view) {
    const stage = this.$(".sl-stage");
    const [natural] = item.pictures;
    const size = { width: natural.naturalWidth, height: natural.naturalHeight };
    const room = { width: stage.clientWidth, height: stage.clientHeight };
    const dpr = devicePixelRatio;
    const withSmall = view === "smooth-and-small";
    const count = this.#shown.length;
    const shape = fit({ room, natural: size, count, small: withSmall, most: this.scale, dpr });
    const { scale, small, stacked, below } = shape;
    Object.assign(this.host.dataset, { view, stacked: stacked ? "yes" : "no", below: below ? "yes" : "no" });
    for (const figure of this.$(".sl-pictures").children) {
      const [picture, canvas] = figure.children;
      picture.style.width = `${size.width * scale}px`;
      picture.style.height = `${size.height * scale}px`;
      canvas.hidden = !withSmall;
      if (withSmall) drawSmall(canvas, picture, small, dpr);
    }
    const { background } = this.host.dataset;
    const css_px = [size.width * scale, size.height * scale];
    return { view, background, scale, css_px, ...(withSmall && { small_scale: small }) };
  }

  // On the picture, or on what is said in its place, from where it goes on to the next picture.
  focus() {
    this.$(this.$(".sl-work").hidden ? ".sl-message" : ".sl-stage").focus({ preventScroll: true });
  }

  blank() {
    this.#shown = [];
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
    const box = this.$(".sl-message");
    const lost = this.$(".sl-work").contains(document.activeElement);
    box.hidden = false;
    this.$(".sl-work").hidden = true;
    if (lost) this.focus();
    box.dataset.kind = kind;
    box.querySelector(".sl-mark").textContent = MARKS[kind] ?? "";
    put(box.querySelector("h2"), title);
    put(box.querySelector(".sl-why"), why);
    const anchor = box.querySelector(".sl-link");
    anchor.hidden = !link;
    if (link) Object.assign(anchor, { href: link.href, textContent: link.text });
    const proof = box.querySelector(".sl-code");
    proof.hidden = !code;
    put(proof, code ? this.say("label.code", { code }) : "");
  }

  progress(done, total, left) {
    const track = this.$(".sl-track");
    track.hidden = this.$(".sl-count").hidden = !total;
    track.setAttribute("aria-valuemax", total);
    track.setAttribute("aria-valuenow", done);
    track.firstChild.style.width = `${total ? (100 * done) / total : 0}%`;
    this.$(".sl-count").textContent = this.say("label.of", { n: done, total }) + (left && ` · ${left}`);
  }

  status(text, kind) {
    const line = this.$(".sl-status");
    put(line, text);
    line.dataset.kind = kind;
  }

  notice(text) {
    const box = this.$(".sl-notice");
    box.hidden = !text;
    put(box.querySelector("p"), text);
  }
}

// The same words are not read aloud again.
function put(line, text) {
  if (line.textContent !== text) line.textContent = text;
}

// The same picture small, smoothed, in whole device pixels.
function drawSmall(canvas, picture, scale, dpr) {
  const [width, height] = [picture.naturalWidth * scale, picture.naturalHeight * scale];
  Object.assign(canvas, { width: Math.round(width * dpr), height: Math.round(height * dpr) });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
}
