// <semsim-labeller>: shows pictures one after the other and sends what people see in them.
//
// An answer is one key; the next picture comes from memory at once, and the answer goes to the
// server behind it (outbox.js). Nothing here knows which answer is right.

import { Bindings } from "./bindings.js";
import { StimulusClock } from "./clock.js";
import { Feed, SignedOut, getJson } from "./feed.js";
import { isShortcut, keyLetters, usualLetter } from "./keys.js";
import { giveBack } from "./leaving.js";
import { Outbox, uuid } from "./outbox.js";
import { Pace, timeLeft } from "./pace.js";
import { Feedback } from "./practice.js";
import { openTab, recall, remember } from "./tabs.js";
import { View } from "./view.js";

const STEPS_BACK = 10;
const HEARTBEAT_MS = 30000;
const USUAL_MS = 3000; // an item, as far as one can expect of anybody
const BETWEEN_MS = 400; // what an answer takes beyond looking
const BEGIN = "/begin"; // the page of whoever is not at work
const HERE = new Set(["practice", "main", "done"]); // steps that this page is for

const WORDS = {
  loading: ["Getting the pictures …", ""],
  finished: ["All done, thank you!", "There is nothing left for you to answer. You can close this page."],
  paused: ["The study is paused", "The researcher has paused it. This page goes on by itself when it continues."],
  closed: ["The study is closed", "Thank you for your help. You can close this page."],
  "you-paused": [
    "Your part is paused",
    "The researcher has paused your part in this study. This page goes on by itself when you may continue.",
  ],
  "you-stopped": [
    "Your part has ended",
    "The researcher has ended your part in this study. Thank you for your help; you can close this page.",
  ],
  elsewhere: ["One moment …", "The next page comes by itself."],
  waiting: [
    "Nothing free right now",
    "Others are looking at the rest. If something becomes free it appears here by itself.",
  ],
};

class SemsimLabeller extends HTMLElement {
  #done = 0;
  #total = 0;
  #history = []; // [{item, vote}], the latest last
  #shown = null; // the item on the screen
  #shownUnder = null; // by which version of the settings
  #least = 0; // milliseconds: an answer sooner than this is not taken
  #isFirst = false; // the original is seen, what was made of it not yet
  #revealing = null;
  #display = {};
  #was = null; // the answer just taken back
  #useKeys = true;
  #bindings = new Bindings();
  #changing = null; // the answer whose new key is awaited
  #noticeHidden = false;
  #uncertain = false; // whether `done` is a guess

  connectedCallback() {
    if (this.#leave) return;
    const ended = new AbortController();
    this.#leave = () => ended.abort();
    this.#listen(ended.signal);
    this.#begin(ended.signal);
  }

  disconnectedCallback() {
    this.#leave?.();
    this.#leave = null;
    clearInterval(this.#beat);
    this.#clock?.close();
    this.#feed?.close();
    this.#tab?.close();
  }

  #leave = null;
  #beat = null;
  #clock = null;
  #feed = null;
  #feedback = null;
  #outbox = null;
  #tab = null;
  #view = null;
  #study = null;
  #settings = null; // how the next picture is shown, by the latest version known
  #pace = new Pace(USUAL_MS);
  #letters = usualLetter;

  #listen(signal) {
    const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
    on(document, "keydown", (event) => this.#onKey(event));
    on(document, "keyup", (event) => {
      if (event.code === "Space" && this.#swallowKeyup) event.preventDefault();
      this.#swallowKeyup = false;
    });
    on(window, "resize", () => {
      if (this.#shown) this.#display = this.#view.fit(this.#shown);
    });
    on(window, "beforeunload", (event) => {
      if (this.#outbox?.size) event.preventDefault();
    });
    on(document, "visibilitychange", () => {
      if (!document.hidden && this.#outbox) this.#comeBack();
    });
    on(window, "focus", () => this.#outbox?.signedOut && this.#comeBack());
    on(window, "pagehide", () => {
      this.#outbox?.sendAllNow();
      if (this.#feed) giveBack({ tab: this.#tab.name, who: this.#study.key, items: this.#feed.tokens });
    });
    on(window, "pageshow", (event) => event.persisted && this.#outbox && this.#comeBack());
  }

  #swallowKeyup = false;

  async #begin(signal) {
    this.#view = new View(this);
    this.#view.message("loading", ...WORDS.loading);
    const study = await this.#getStudy(signal);
    if (!study || signal.aborted) return;
    if (!HERE.has(study.step)) return location.replace(BEGIN);
    this.#study = this.#settings = study;
    const tab = await openTab(study.key, uuid);
    if (signal.aborted) return tab.close();
    this.#tab = tab;
    this.#build();
    const left = this.#outbox.adopt(tab.isAlive);
    this.#uncertain = left.length > 0;
    const votes = left.filter((entry) => entry.path === "/api/vote");
    const undone = new Set(left.filter((e) => e.path === "/api/undo").map((e) => e.body.id));
    this.#feed.skip(votes.filter((e) => !undone.has(e.body.id)).map((e) => e.body.item));
    const { done, median_rt_ms } = study.progress;
    if (median_rt_ms !== null) this.#pace.begin(done, median_rt_ms + BETWEEN_MS + study.first_ms);
    this.#setProgress(study.progress, votes.length - undone.size);
    this.#history = JSON.parse(recall(this.#historyKey) ?? "[]");
    this.#beat = setInterval(() => this.#heartbeat(), HEARTBEAT_MS);
    this.#letters = await keyLetters();
    this.#showLetters();
    this.#update();
    this.#feed.refill();
  }

  async #getStudy(signal) {
    for (let wait = 500; !signal.aborted; wait = Math.min(8000, wait * 2)) {
      try {
        return await getJson("/api/study");
      } catch (error) {
        if (error instanceof SignedOut) {
          this.#sayWhoAreYou();
          await new Promise((resolve) => addEventListener("focus", resolve, { once: true, signal }));
          continue;
        }
        this.#view.message("trouble", "The server does not answer", "Trying again by itself …");
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
    return null;
  }

  #build() {
    const update = () => this.#update();
    const signedOut = () => {
      this.#outbox.signedOut = true;
      this.#update();
    };
    this.#clock = new StimulusClock();
    this.#outbox = new Outbox({
      who: this.#study.key,
      tab: this.#tab.name,
      onChange: update,
      onSent: (entry, reply) => {
        if (entry.path === "/api/vote") this.#feedback.tell(entry.body.id, reply.feedback);
        if (this.#outbox.size === 0) this.#emptied();
      },
      onRefused: (entry) => {
        this.#feedback.drop(entry.body.id);
        this.#noticeHidden = false;
        if (entry.body.item) this.#feed.release(entry.body.item);
        if (entry.path === "/api/vote") this.#done -= 1;
        if (entry.problem.status === 403) this.#feed.ask();
        if (entry.problem.lookAgain) this.#view.tell(entry.problem.message);
      },
    });
    this.#feed = new Feed({
      tab: this.#tab.name,
      who: this.#study.key,
      outbox: this.#outbox,
      onChange: update,
      onProgress: (progress) => this.#setProgress(progress, 0),
      onVersion: (version) => this.#learnSettings(version),
      onSignedOut: signedOut,
    });
    this.#view.build(this.#study, (code, event) => this.#press(code, event));
    this.#feedback = new Feedback(this.#view, () => {
      this.#shown = null;
      this.#focusStage();
      if (!this.#feed.current) this.#feed.refill();
      this.#update();
    });
    const on = (selector, handler) => this.#view.$(selector).addEventListener("click", handler);
    on(".sl-undo", () => this.#undo());
    on(".sl-help-open", () => this.#help());
    this.#view.$("dialog").addEventListener("close", () => this.#closedHelp());
    this.#view.onChange((code) => this.#awaitKey(code), () => this.#usualKeys());
    on(".sl-again", () => this.#outbox.sendRefusedAgain());
    on(".sl-hide", () => {
      this.#noticeHidden = true;
      this.#update();
    });
    this.#useKeys = localStorageFlag("semsim:keys");
    const box = this.#view.$(".sl-shortcuts");
    box.checked = this.#useKeys;
    box.addEventListener("change", () => {
      this.#useKeys = localStorageFlag("semsim:keys", box.checked);
      this.#sayKeys();
    });
    this.#sayKeys();
  }

  #emptied() {
    if (this.#uncertain) this.#recount();
    if (!this.#shown) this.#feed.refill();
  }

  // After a reload nobody knows which of the answers left over had already arrived.
  async #recount() {
    const { calm } = this.#outbox;
    this.#uncertain = false;
    try {
      const { progress } = await getJson("/api/study", this.#study.key);
      if (calm === this.#outbox.calm) this.#setProgress(progress, 0);
    } catch {
      // The next refill counts again.
    }
  }

  // A picture on the screen stays as it is; the next one is shown by the new settings.
  async #learnSettings(version) {
    if (version <= this.#settings.version) return;
    try {
      const latest = await getJson("/api/study", this.#study.key);
      if (latest.version > this.#settings.version) this.#settings = latest;
    } catch {
      // The next refill tells the version again.
    }
  }

  // The hint is about keys, so it goes with them.
  #sayKeys() {
    this.dataset.keys = this.#useKeys ? "on" : "off";
  }

  #showLetters() {
    this.#view.setLetters((code) => this.#letters(this.#bindings.keyOf(code)));
  }

  #awaitKey(code) {
    this.#changing = code;
    this.#view.changing(code, "Press the new key, or Escape to leave it.");
  }

  #usualKeys() {
    this.#bindings.reset();
    this.#changing = null;
    this.#showLetters();
    this.#view.changing(null, "The usual keys are back.");
  }

  // Whether the press was the new key of an answer.
  #changeKey(event) {
    if (this.#changing === null || event.repeat) return false;
    if (event.code === "Tab") return false; // somebody moves on
    event.preventDefault();
    this.#swallowKeyup = event.code === "Space";
    const code = this.#changing;
    const leave = event.code === "Escape";
    if (!leave && !this.#bindings.assign(code, event.code, this.#view.codes)) {
      this.#view.changing(code, "That key is needed for something else. Press another one.");
      return true;
    }
    this.#changing = null;
    this.#showLetters();
    this.#view.changing(null, leave ? "Left as it was." : `Changed to ${this.#letters(event.code)}.`);
    this.#view.$(`[data-change="${code}"]`).focus();
    return true;
  }

  #closedHelp() {
    this.#changing = null;
    this.#view.changing(null, "");
    this.#focusStage();
  }

  #onKey(event) {
    if (this.#view?.$("dialog")?.open && this.#changeKey(event)) return;
    if (!this.#feed || this.#view.$("dialog").open || !isShortcut(event)) return;
    const command = event.ctrlKey || event.metaKey;
    if (event.code === "Backspace" && !command) return this.#did(event, () => this.#undo());
    // Undo goes by the letter, as everywhere else on the computer.
    if (command && !event.shiftKey && event.key.toLowerCase() === "z") {
      return this.#did(event, () => this.#undo());
    }
    if (command) return;
    // Whoever switches single keys off, WCAG 2.1.4, means this one too.
    if (event.key === "?" && this.#useKeys) return this.#did(event, () => this.#help());
    if (this.#feedback.open && event.code === "Enter") return this.#did(event, () => this.#feedback.end());
    const { codes } = this.#view;
    const digit = /^\d$/.test(event.key) ? event.code.replace("Numpad", "Digit") : event.code;
    const code = this.#bindings.meaningOf(event.code, codes) ?? this.#bindings.meaningOf(digit, codes);
    if (event.shiftKey || !this.#useKeys) return;
    if (this.#view.answerOf(code) === undefined) return this.#sayNoKey(event);
    this.#did(event, () => (this.#feedback.open ? this.#feedback.end() : this.#press(code, event)));
  }

  #sayNoKey({ key }) {
    if (key.length !== 1 || !this.#shown || this.#feedback.open) return;
    this.#view.tell(`“${key.toUpperCase()}” is not a key here. Press ? to see the keys.`);
  }

  #did(event, action) {
    event.preventDefault(); // Space would scroll, Backspace might go back
    this.#swallowKeyup = event.code === "Space";
    action();
  }

  #press(code, event) {
    const answer = this.#view.answerOf(code);
    if (!this.#shown || this.#shown !== this.#feed.current || answer === undefined) return;
    if (this.#isFirst) return;
    const pointed = event.type === "click" && event.detail > 0;
    const reason = this.#view.reasonOf(code) ?? null;
    const { rt_ms, hidden_ms, blur_ms } = this.#clock.read(event.timeStamp);
    // No time at all: the picture was not even painted.
    if (this.#least > 0 && (rt_ms === null || rt_ms < this.#least)) {
      return this.#view.tell("That was too quick to have looked, so it was not taken. Look again.");
    }
    const { practice } = this.#shown;
    const vote = {
      id: uuid(),
      item: this.#shown.item,
      answer,
      reason,
      rt_ms,
      client_ts: new Date().toISOString(),
      tab: this.#tab.name,
      version: this.#shownUnder,
      display: {
        ...this.#display,
        hidden_ms,
        blur_ms,
        dpr: devicePixelRatio,
        zoom: visualViewport?.scale,
        viewport: [innerWidth, innerHeight],
        input: pointed ? "pointer" : "key",
        again: this.#was !== null,
      },
    };
    this.#pace.note(event.timeStamp);
    this.#was = null;
    this.#done += 1;
    // Before it is sent: the reply may not find the feedback closed.
    if (practice) this.#feedback.await(vote);
    this.#outbox.add("/api/vote", vote);
    this.#remember({ item: this.#feed.take(), vote: { id: vote.id, answer, reason } });
    this.#view.flash(code);
    // A later Space must not press the button that was clicked.
    if (pointed) this.#focusStage();
    this.#update();
  }

  #focusStage() {
    this.#view.$(".sl-stage").focus({ preventScroll: true });
  }

  #remember(step) {
    this.#history.push(step);
    if (this.#history.length > STEPS_BACK) this.#history.shift();
    this.#saveHistory();
  }

  #saveHistory() {
    const steps = this.#history.map(({ item, vote }) => ({ item: plain(item), vote }));
    remember(this.#historyKey, JSON.stringify(steps));
  }

  // What was practised cannot be taken back later.
  get #historyKey() {
    return `semsim:${this.#study.key}:history${this.#study.step === "practice" ? ":practice" : ""}`;
  }

  #undo() {
    const last = this.#history.pop();
    if (!last) return;
    this.#saveHistory();
    this.#outbox.add("/api/undo", { id: last.vote.id });
    this.#done -= 1;
    this.#was = last.vote;
    this.#shown = null;
    this.#feedback.drop();
    this.#feed.putBack(last.item);
    this.#update();
  }

  #help() {
    const dialog = this.#view.$("dialog");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  #comeBack() {
    const out = this.#outbox.signedOut;
    this.#outbox.retryNow();
    this.#heartbeat();
    if (out || !this.#feed.current) this.#feed.refill();
    this.#update();
  }

  async #heartbeat() {
    const body = JSON.stringify({ tab: this.#tab.name, items: this.#feed.tokens });
    const headers = { "Content-Type": "application/json", "X-Annotator": this.#study.key };
    try {
      const { status } = await fetch("/api/heartbeat", { method: "POST", headers, body });
      if (status === 403) this.#feed.ask();
    } catch {
      // No server: the outbox says so where there is anything to save.
    }
  }

  #setProgress(progress, unsent) {
    this.#done = progress.done + unsent;
    this.#total = progress.total;
    this.#update();
  }

  // Make the screen say what is the case.
  #update() {
    if (!this.#feed) return;
    this.#updateStatus();
    const done = Math.max(0, this.#done);
    const total = Math.max(this.#total, done);
    this.#view.progress(done, total, timeLeft(total - done, this.#pace.perItem));
    this.#view.$(".sl-undo").disabled = this.#history.length === 0;
    const item = this.#feed.current;
    if (this.#outbox.signedOut) return this.#sayWhoAreYou();
    if (this.#feedback.open) return; // the item stays in sight with what it was
    if (!item) return this.#sayWhyNothing();
    if (item.ready) this.#showItem(item, done + 1, total);
    else if (this.#shown) {
      this.#shown = null;
      this.#view.blank();
    }
  }

  #showItem(item, position, total) {
    if (this.#shown === item) return;
    clearTimeout(this.#revealing);
    this.#isFirst = false;
    this.#shown = item;
    this.#shownUnder = this.#settings.version;
    this.#least = this.#settings.min_rt_ms ?? 0;
    this.#view.use(this.#settings);
    this.#display = this.#view.show(item, position, Math.max(total, position), this.#was);
    const { first_ms } = this.#settings;
    if (first_ms) this.#showFirst(item, first_ms);
    else this.#clock.start();
  }

  // Nothing can be answered before what is asked about has been seen.
  #showFirst(item, ms) {
    this.#isFirst = true;
    this.#view.showFirst(item);
    this.#revealing = setTimeout(() => {
      if (this.#shown !== item) return;
      if (document.hidden) return this.#showFirst(item, ms);
      this.#isFirst = false;
      this.#view.reveal(item, this.#was);
      this.#clock.start();
    }, ms);
  }

  #updateStatus() {
    const { size, failing, signedOut, refused, survivesReload } = this.#outbox;
    this.dataset.unsaved = size;
    const how = signedOut ? "sign in again" : failing ? "retrying" : "saving";
    const keep = survivesReload ? "" : ", keep this page open";
    const trouble = signedOut || failing;
    if (size) this.#view.status(`${size} unsaved — ${how}${keep}`, trouble ? "trouble" : "busy");
    else if (this.#feed.trouble) this.#view.status(`${this.#feed.trouble} Retrying`, "trouble");
    else this.#view.status("Saved ✓", "saved");
    const some = refused.length && !this.#noticeHidden;
    const answers = refused.length === 1 ? "One answer was" : `${refused.length} answers were`;
    this.#view.notice(some ? `${answers} not accepted: ${refused.at(-1).problem.message} Kept in this browser.` : "");
  }

  #sayWhyNothing() {
    this.#shown = null;
    const { state, trouble, broken } = this.#feed;
    if (trouble) return this.#view.message("trouble", trouble, "Trying again by itself …");
    if (state === "waiting" && broken.size) {
      const what = broken.size === 1 ? "One picture" : `${broken.size} pictures`;
      return this.#view.message("trouble", `${what} cannot be shown`, "Please tell the researcher who gave you the link.");
    }
    if (state === "elsewhere" && !this.#outbox.size) location.replace(BEGIN);
    const { code, page } = this.#feed.completion ?? {};
    const link = code && { href: page, text: "Go on" };
    return this.#view.message(state, ...(WORDS[state] ?? WORDS.loading), { link, code });
  }

  #sayWhoAreYou() {
    this.#shown = null;
    const kept = this.#outbox?.size;
    const why = kept
      ? `${kept === 1 ? "One answer is" : `${kept} answers are`} kept in this browser and will be saved once you have signed in.`
      : "Please open the link of your study again.";
    const link = this.#study && { href: this.#study.sign_in, text: "Sign in again" };
    this.#view.message("trouble", "You are signed out", why, { link });
  }
}

// An item without its pictures, which come from the cache after a reload.
function plain({ item, images, candidates, practice }) {
  return { item, images, candidates, practice };
}

function localStorageFlag(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, value ? "on" : "off");
    return localStorage.getItem(key) !== "off";
  } catch {
    return value ?? true;
  }
}

customElements.define("semsim-labeller", SemsimLabeller);
