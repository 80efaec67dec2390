// <semsim-labeller>: shows pictures one after the other and sends what people see in them.
//
// An answer is one key; the next picture comes from memory at once, and the answer goes to the
// server behind it (outbox.js). Nothing here knows which answer is right.

import { Bindings } from "./bindings.js";
import { showLink } from "./own_link.js";
import { StimulusClock } from "./clock.js";
import { Feed, SignedOut, getJson } from "./feed.js";
import { VIEW_CODE, codeOf, isShortcut, keyLetters, usualLetter } from "./keys.js";
import { giveBack } from "./leaving.js";
import { Looking } from "./looking.js";
import { keepPage } from "./offline.js";
import { Outbox, uuid } from "./outbox.js";
import { Pace, timeLeft } from "./pace.js";
import { Feedback } from "./practice.js";
import { rooted } from "./root.js";
import { openTab, recall, remember } from "./tabs.js";
import { View } from "./view.js";

const STEPS_BACK = 10;
const REST_EVERY = 40; // answers, in a study of twice as many and more
const HEARTBEAT_MS = 30000;
const AWAY_MS = 600000; // without a sign of anybody: what is held here comes free for others
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "focus"];
const CALM_MS = 4000; // the first pictures go first
const USUAL_MS = 3000; // an item, as far as one can expect of anybody
const DOUBLE_TAP_MS = 300; // in which a second tap on a button is none of its own
const BETWEEN_MS = 400; // what an answer takes beyond looking
const BEGIN = rooted("/begin"); // the page of whoever is not at work
const HERE = new Set(["practice", "main", "done"]); // steps that this page is for

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
  #tapped = null; // the button that was pressed last, and when
  #seen = Date.now(); // when somebody was last here

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
  #looking = new Looking(
    () => this.#shown && this.#view.draw(this.#shown, this.#looking.view),
    (held) => this.#view.$(".sl-view").setAttribute("aria-pressed", held),
  );
  #study = null;
  #settings = null; // how the next picture is shown, by the latest version known
  #pace = new Pace(USUAL_MS);
  #letters = usualLetter;

  #listen(signal) {
    const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
    SIGNS.forEach((type) => on(window, type, () => this.#isHere()));
    on(document, "keydown", (event) => this.#onKey(event));
    on(document, "keyup", (event) => {
      if (this.#view && this.#meaningOf(event) === VIEW_CODE) this.#looking.release();
      if (event.code === "Space" && this.#swallowKeyup) event.preventDefault();
      this.#swallowKeyup = false;
    });
    on(window, "blur", () => this.#looking.release());
    on(window, "resize", () => this.#redraw());
    on(window, "beforeunload", (event) => {
      if (this.#outbox?.size) event.preventDefault();
    });
    on(document, "visibilitychange", () => {
      if (!document.hidden && this.#outbox) this.#comeBack();
    });
    on(window, "focus", () => this.#outbox?.signedOut && this.#comeBack());
    on(window, "pagehide", () => {
      this.#outbox?.sendAllNow();
      this.#keepAhead();
      if (this.#feed) giveBack({ tab: this.#tab.name, who: this.#study.key, items: this.#feed.tokens });
    });
    on(window, "pageshow", (event) => event.persisted && this.#outbox && this.#comeBack());
  }

  #swallowKeyup = false;

  async #begin(signal) {
    const study = inThePage() ?? (await getJson("/api/study"));
    if (signal.aborted) return;
    this.#view = new View(this, study.texts);
    this.#say("loading");
    this.inert = true; // a button that is seen is heard
    if (!HERE.has(study.step)) return location.replace(BEGIN);
    this.#study = this.#settings = study;
    const tab = await openTab(study.key, uuid);
    if (signal.aborted) return tab.close();
    this.#tab = tab;
    this.#build();
    this.inert = false;
    const left = this.#outbox.adopt(tab.isAlive);
    this.#uncertain = left.length > 0;
    const votes = left.filter((entry) => entry.path === "/api/vote");
    const undone = new Set(left.filter((e) => e.path === "/api/undo").map((e) => e.body.id));
    this.#feed.skip(votes.filter((e) => !undone.has(e.body.id)).map((e) => e.body.item));
    const { done, median_rt_ms } = study.progress;
    if (median_rt_ms !== null) this.#pace.begin(done, median_rt_ms + BETWEEN_MS + study.first_ms);
    this.#setProgress(study.progress, votes.length - undone.size);
    this.#history = JSON.parse(recall(this.#historyKey, KEPT_IN) ?? "[]");
    this.#beat = setInterval(() => this.#heartbeat(), HEARTBEAT_MS);
    this.#letters = await keyLetters();
    this.#showLetters();
    this.#update();
    this.#feed.refill();
    if (inThePage()) setTimeout(keepPage, CALM_MS);
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
      say: this.#view.say,
      onChange: update,
      onSent: (entry, reply) => {
        if (entry.path === "/api/vote") this.#feedback.tell(entry.body.id, reply.feedback);
        if (this.#outbox.size === 0) this.#emptied();
      },
      onRefused: (entry) => {
        this.#feedback.drop(entry.body.id);
        this.#noticeHidden = false;
        if (entry.body.item) this.#feed.release(entry.body.item);
        this.#done += entry.path === "/api/vote" ? -1 : 1;
        if (entry.problem.status === 403) this.#feed.ask();
        if (entry.problem.lookAgain) this.#lookAgain(entry);
        else if (entry.path === "/api/undo" && entry.problem.status === 409) this.#view.tell(entry.problem.message);
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
      onAlone: () => this.#goOnAlone(),
    });
    this.#view.build(this.#study, (code, event) => this.#press(code, event));
    this.#feedback = new Feedback(this.#view, () => {
      this.#shown = null;
      this.#view.focus();
      if (!this.#feed.current) this.#feed.refill();
      this.#update();
    });
    const on = (selector, handler) => this.#view.$(selector).addEventListener("click", handler);
    on(".sl-undo", (event) => {
      if (event.detail > 0 && this.#isSecondTap(event)) return;
      this.#tapped = [event.currentTarget, event.timeStamp];
      this.#undo(event.detail > 0);
    });
    on(".sl-help-open", () => this.#help());
    // Nobody who comes after on this computer reads what was answered.
    this.#view.$(".sl-foot form").addEventListener("submit", () => remember(this.#historyKey, "[]", KEPT_IN));
    on(".sl-own-link", () => showLink(this.#view, this.#study.key));
    this.#view.$(".sl-help").addEventListener("close", () => this.#closedHelp());
    this.#view.$(".sl-back").addEventListener("close", () => this.#view.focus());
    this.#holdToLook(this.#view.$(".sl-view"));
    this.#view.onChange((code) => this.#awaitKey(code), () => this.#usualKeys());
    on(".sl-again", () => {
      this.#done += this.#outbox.sendRefusedAgain();
      this.#view.focus();
      this.#update();
    });
    on(".sl-hide", () => {
      this.#noticeHidden = true;
      this.#view.focus();
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

  // With a finger or a mouse as with the key; by keyboard the button is held like one.
  #holdToLook(button) {
    const on = (types, does) => types.forEach((type) => button.addEventListener(type, does));
    on(["pointerdown"], (event) => {
      button.setPointerCapture(event.pointerId);
      this.#looking.hold();
    });
    on(["pointerup", "pointercancel", "lostpointercapture", "blur"], () => this.#looking.release());
    on(["pointerup"], () => this.#view.focus()); // as after any click
    on(["contextmenu"], (event) => event.preventDefault()); // a long touch asks for it
    on(["keydown", "keyup"], (event) => {
      if (event.code !== "Space" && event.code !== "Enter") return;
      event.preventDefault();
      if (event.type === "keydown") this.#looking.hold();
      else this.#looking.release();
    });
  }

  #redraw() {
    if (!this.#shown) return;
    this.#looking.release();
    this.#display = this.#view.draw(this.#shown, this.#looking.view);
  }

  #emptied() {
    if (this.#uncertain) this.#recount();
    if (!this.#shown) this.#feed.saved();
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
    this.#view.changing(code, this.#view.say("label.change_now"));
  }

  #usualKeys() {
    this.#bindings.reset();
    this.#changing = null;
    this.#showLetters();
    this.#view.changing(null, this.#view.say("label.change_is_reset"));
  }

  // Whether the press was the new key of an answer.
  #changeKey(event) {
    if (this.#changing === null || event.repeat) return false;
    if (event.code === "Tab") return false; // somebody moves on
    event.preventDefault();
    this.#swallowKeyup = event.code === "Space";
    const code = this.#changing;
    const leave = event.code === "Escape";
    const pressed = codeOf(event, this.#letters);
    if (!leave && !this.#bindings.assign(code, pressed)) {
      this.#view.changing(code, this.#view.say("label.change_taken"));
      return true;
    }
    this.#changing = null;
    this.#showLetters();
    const { say } = this.#view;
    this.#view.changing(null, leave ? say("label.change_left") : say("label.change_done", { key: this.#letters(pressed) }));
    this.#view.$(`[data-change="${code}"]`).focus();
    return true;
  }

  #closedHelp() {
    this.#changing = null;
    this.#view.changing(null, "");
    this.#view.focus();
  }

  #onKey(event) {
    if (this.#view?.$(".sl-help").open && this.#changeKey(event)) return;
    if (!this.#feed || this.#view.$("dialog[open]") || !isShortcut(event)) return;
    const command = event.ctrlKey || event.metaKey;
    if (event.code === "Backspace" && !command) return this.#did(event, () => this.#undo());
    // Undo goes by the letter, as everywhere else on the computer; by the place where keys have others.
    const z = /^[a-z]$/i.test(event.key) ? /z/i.test(event.key) : event.code === "KeyZ";
    if (command && !event.shiftKey && z) return this.#did(event, () => this.#undo());
    if (command) return;
    // Whoever switches single keys off, WCAG 2.1.4, means this one too.
    if (event.key === "?" && this.#useKeys) return this.#did(event, () => this.#help());
    if (this.#feedback.open && event.code === "Enter") return this.#did(event, () => this.#feedback.end());
    const code = this.#meaningOf(event);
    // On some keyboards digits need Shift.
    if ((event.shiftKey && !/^\d$/.test(event.key)) || !this.#useKeys) return;
    if (code === VIEW_CODE) return this.#did(event, () => this.#shown && this.#looking.hold());
    if (this.#view.answerOf(code) === undefined) return this.#sayNoKey(event);
    this.#did(event, () => (this.#feedback.open ? this.#feedback.end() : this.#press(code, event)));
  }

  #meaningOf(event) {
    const { codes } = this.#view;
    const pressed = codeOf(event, this.#letters);
    const digit = /^\d$/.test(event.key) ? pressed.replace("Numpad", "Digit") : pressed;
    return this.#bindings.meaningOf(pressed, codes) ?? this.#bindings.meaningOf(digit, codes);
  }

  #sayNoKey({ key }) {
    if (key.length !== 1 || !this.#shown || this.#feedback.open) return;
    this.#view.tell(this.#view.say("label.no_key", { key: key.toUpperCase() }));
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
    if (pointed && this.#isSecondTap(event)) return;
    const reason = this.#view.reasonOf(code) ?? null;
    const { rt_ms, hidden_ms, blur_ms } = this.#clock.read(event.timeStamp);
    // No time at all: the picture was not even painted.
    if (this.#least > 0 && (rt_ms === null || rt_ms < this.#least)) {
      return this.#view.tell(this.#view.say("label.too_quick"));
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
      views: this.#looking.seen,
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
    if (pointed) this.#tapped = [event.currentTarget, event.timeStamp];
    this.#was = null;
    this.#done += 1;
    // Before it is sent: the reply may not find the feedback closed.
    if (practice) this.#feedback.await(vote);
    this.#outbox.add("/api/vote", vote);
    this.#remember({ item: this.#feed.take(), vote: { id: vote.id, answer, reason } });
    this.#view.flash(code);
    // A later Space must not press the button that was clicked.
    if (pointed) this.#view.focus();
    this.#update();
  }

  #isSecondTap({ currentTarget, timeStamp }) {
    const [button, at] = this.#tapped ?? [];
    return button === currentTarget && timeStamp - at < DOUBLE_TAP_MS;
  }

  #remember(step) {
    this.#history.push(step);
    if (this.#history.length > STEPS_BACK) this.#history.shift();
    this.#saveHistory();
  }

  #saveHistory() {
    const steps = this.#history.map(({ item, vote }) => ({ item: plain(item), vote }));
    remember(this.#historyKey, JSON.stringify(steps), KEPT_IN);
  }

  // Of a page without a network: the browser may be told to load it again.
  get #aheadKey() { return `semsim:${this.#study.key}:ahead`; }

  #keepAhead() {
    const alone = this.#outbox?.failing || this.#feed?.trouble;
    const kept = alone && { done: this.#done, total: this.#total, items: this.#feed.atHand.map(plain) };
    if (this.#feed) remember(this.#aheadKey, kept ? JSON.stringify(kept) : "");
  }

  // Where the page comes without a server, it goes on where it was left.
  #goOnAlone() {
    const kept = JSON.parse(recall(this.#aheadKey) || "null");
    if (!kept) return;
    this.#feed.restore(kept.items);
    this.#setProgress(kept, 0);
  }

  // What was practised cannot be taken back later.
  get #historyKey() {
    return `semsim:${this.#study.key}:history${this.#study.step === "practice" ? ":practice" : ""}`;
  }

  #undo(pointed = false) {
    const last = this.#history.pop();
    if (!last) return;
    this.#saveHistory();
    if (!this.#outbox.forget(last.vote.id)) {
      this.#outbox.add("/api/undo", { id: last.vote.id });
      this.#done -= 1;
    }
    this.#was = last.vote;
    this.#shown = null;
    this.#feedback.drop();
    this.#feed.putBack(last.item);
    this.#update();
    if (pointed) this.#view.focus();
  }

  // An answer that was too quick is nowhere: there is nothing to take back.
  #lookAgain({ body, problem }) {
    this.#history = this.#history.filter(({ vote }) => vote.id !== body.id);
    this.#saveHistory();
    this.#view.tell(problem.message);
  }

  #help() {
    const dialog = this.#view.$(".sl-help");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  get #isAway() { return Date.now() - this.#seen > AWAY_MS; }

  #isHere() {
    const was = this.#isAway;
    this.#seen = Date.now();
    if (was && this.#outbox) this.#comeBack();
  }

  #comeBack() {
    this.#seen = Date.now();
    this.#feed.wake();
    const out = this.#outbox.signedOut;
    this.#outbox.retryNow();
    this.#heartbeat();
    if (out || !this.#feed.current) this.#feed.refill();
    this.#update();
  }

  // Says that somebody is at work, and keeps what they hold; not for a page left open.
  async #heartbeat() {
    if (this.#isAway && this.#feed.current) return this.#feed.rest();
    const body = JSON.stringify({ tab: this.#tab.name, items: this.#feed.tokens });
    const headers = { "Content-Type": "application/json", "X-Annotator": this.#study.key };
    try {
      const { status } = await fetch(rooted("/api/heartbeat"), { method: "POST", headers, body });
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
    const stopped = this.#feed.state === "you-stopped"; // then nothing of theirs counts
    const done = Math.max(0, this.#done);
    const total = stopped ? 0 : Math.max(this.#total, done);
    this.#view.progress(done, total, timeLeft(this.#view.say, total - done, this.#pace.perItem));
    this.#view.$(".sl-undo").disabled = stopped || this.#history.length === 0;
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
    const { first_ms, view } = this.#settings;
    this.#looking.begin(view);
    this.#display = this.#view.show(item, position, Math.max(total, position), this.#was, view);
    scrollTo(0, 0); // on a low screen somebody has come down to the answers
    const n = position - 1;
    const rests = n > 0 && n % REST_EVERY === 0 && total >= 2 * REST_EVERY && !item.practice && !this.#was;
    if (rests) this.#view.tell(this.#view.say("label.rest", { n, total }));
    if (first_ms) this.#showFirst(item, first_ms);
    else this.#clock.start();
  }

  // Nothing can be answered before what is asked about has been seen.
  #showFirst(item, ms) {
    this.#isFirst = true;
    this.#view.showFirst(item, this.#looking.view);
    this.#revealing = setTimeout(() => {
      if (this.#shown !== item) return;
      if (document.hidden) return this.#showFirst(item, ms);
      this.#isFirst = false;
      this.#looking.begin(this.#settings.view);
      this.#display = this.#view.reveal(item, this.#was, this.#looking.view);
      this.#clock.start();
    }, ms);
  }

  #updateStatus() {
    const { size, failing, signedOut, refused, survivesReload } = this.#outbox;
    this.dataset.unsaved = size;
    const { say } = this.#view;
    const how = signedOut ? "signed_out_unsaved" : failing ? "retrying" : "saving";
    const keep = survivesReload ? "" : `, ${say("label.keep_open")}`;
    const trouble = signedOut || failing;
    if (size) this.#view.status(say(`label.${how}`, { n: size }) + keep, trouble ? "trouble" : "busy");
    else if (this.#feed.trouble) this.#view.status(say(this.#feed.trouble), "trouble");
    else this.#view.status(say("label.saved"), "saved");
    const some = refused.length && !this.#noticeHidden;
    const words = some && { n: refused.length, why: refused.at(-1).problem.message };
    this.#view.notice(some ? say("label.refused", words) : "");
  }

  #sayWhyNothing() {
    this.#shown = null;
    const { state, trouble, broken } = this.#feed;
    const { say } = this.#view;
    if (trouble) {
      const why = this.#outbox.size ? "label.offline_why" : "label.no_server_why";
      return this.#view.message("trouble", say("label.no_server"), say(why));
    }
    // All that the server has are those whose answers are under way, or that cannot be shown.
    if (["ready", "waiting"].includes(state) && this.#outbox.size) return this.#view.message("", say("label.elsewhere"), "");
    if (["waiting", "ready"].includes(state) && broken.size) {
      return this.#view.message("trouble", say("label.broken", { n: broken.size }), say("label.broken_why"));
    }
    if (state === "elsewhere" && !this.#outbox.size) location.replace(BEGIN);
    const { code, page } = this.#feed.completion ?? {};
    const link = code && { href: page, text: say("label.finished_go") };
    return this.#say(state, { link, code });
  }

  // What a state is called, and what comes of it.
  #say(state, more) {
    const { say } = this.#view;
    const name = `label.${state.replace("-", "_")}`;
    const why = say(`${name}_why`);
    this.#view.message(state, say(name), why === `${name}_why` ? "" : why, more);
  }

  #sayWhoAreYou() {
    this.#feedback.drop(); // or nothing would ever be shown in the place of this
    this.#shown = null;
    const { say } = this.#view;
    const kept = this.#outbox.size;
    const why = kept ? say("label.signed_out_kept", { n: kept }) : say("label.signed_out_why");
    const link = { href: this.#study.sign_in, text: say("label.signed_out_go") };
    this.#view.message("trouble", say("label.signed_out"), why, { link });
  }
}

// What the server has put into the page of whoever is signed in; a preview asks for it instead.
function inThePage() {
  const told = document.getElementById("study");
  return told && JSON.parse(told.textContent);
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

// Where the last answers are kept, to be taken back another day; of a preview nothing is.
const KEPT_IN = inThePage() ? "localStorage" : "sessionStorage";

customElements.define("semsim-labeller", SemsimLabeller);
