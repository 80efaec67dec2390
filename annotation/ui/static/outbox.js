// What has not reached the server yet: sent in order, one at a time, for as long as it takes.
//
// Each message is an entry of its own in localStorage from the moment it is made until the server
// has confirmed it, so that a reload, a crash or a dead server loses nothing. Messages that the
// server refuses for good are kept aside and shown.

import { rooted } from "./root.js";
import { errorWords } from "./words.js";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;
const TIMEOUT_MS = 15000;
const RETRIED = new Set([408, 425, 429]); // 4xx that may succeed later

export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // randomUUID needs https or localhost; a study may run on a plain local network.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// localStorage, or a stand-in where the browser forbids it.
function safeStorage() {
  try {
    localStorage.setItem("semsim:probe", "1");
    localStorage.removeItem("semsim:probe");
    return localStorage;
  } catch {
    const held = new Map();
    return {
      volatile: true,
      get length() { return held.size; },
      key: (index) => [...held.keys()][index] ?? null,
      getItem: (key) => held.get(key) ?? null,
      setItem: (key, value) => held.set(key, value),
      removeItem: (key) => held.delete(key),
    };
  }
}

export class Outbox {
  #storage = safeStorage();
  #who;
  #prefix;
  #tab;
  #queue = [];
  #aside = [];
  #lastSeq = 0;
  #pumping = false;
  #wake = null;
  #persisted = true;
  #made = 0;

  // who: study and annotator; say: in which words; onChange(): something shown has changed; onRefused(entry): kept aside.
  constructor({ who, tab, say, onChange, onSent, onRefused }) {
    this.say = say;
    this.#who = who;
    this.#prefix = `semsim:${who}:`;
    this.#tab = tab;
    this.onChange = onChange;
    this.onSent = onSent;
    this.onRefused = onRefused;
    this.failing = false;
    this.signedOut = false;
    this.#aside = this.#stored("aside");
    addEventListener("online", () => this.retryNow());
  }

  get size() { return this.#queue.length; }
  // The same number twice: nothing was unsent or made in between. NaN, unlike itself, while busy.
  get calm() { return this.size ? NaN : this.#made; }
  get refused() { return this.#aside; }
  get survivesReload() { return this.#persisted && !this.#storage.volatile; }

  // Take over what this tab, or a tab that is gone, has left unsent.
  adopt(isAlive) {
    const left = this.#stored("out").filter((entry) => entry.tab === this.#tab || !isAlive(entry.tab));
    this.#queue = left.sort((a, b) => a.seq - b.seq);
    this.#lastSeq = this.#queue.at(-1)?.seq ?? 0;
    this.#pump();
    return this.#queue;
  }

  add(path, body) {
    this.#lastSeq = Math.max(this.#lastSeq + 1, Date.now() * 1000);
    const entry = { seq: this.#lastSeq, tab: this.#tab, path, body };
    this.#queue.push(entry);
    this.#made += 1;
    this.#write("out", entry);
    this.#pump();
    this.onChange();
  }

  // Try at once what waits: the network is back, or somebody has signed in again.
  retryNow() {
    this.signedOut = false;
    this.#wake?.();
    this.#pump();
  }

  // The page closes and may never open again: what waits behind the one on its way goes at once.
  // Messages then arrive in any order, which answers stand; with an undo among them it matters.
  sendAllNow() {
    if (this.signedOut || this.#queue.some(({ path }) => path === "/api/undo")) return;
    this.#queue.slice(this.failing ? 0 : 1).forEach((entry) => deliver(entry, this.#who, this.say));
  }

  // Returns how many more votes there will be.
  sendRefusedAgain() {
    const again = this.#aside;
    this.#aside = [];
    for (const entry of again) {
      delete entry.problem;
      if (this.#write("out", entry)) this.#storage.removeItem(this.#key("aside", entry));
      this.#queue.push(entry);
    }
    this.#made += again.length;
    this.retryNow();
    this.onChange();
    return again.reduce((sum, { path }) => sum + (path === "/api/vote" ? 1 : -1), 0);
  }

  // Whether the vote was refused and kept aside: then it is no more, and nothing has to be undone.
  forget(id) {
    const kept = this.#aside.find(({ path, body }) => path === "/api/vote" && body.id === id);
    if (!kept) return false;
    this.#aside = this.#aside.filter((entry) => entry !== kept);
    for (const kind of ["aside", "out"]) this.#storage.removeItem(this.#key(kind, kept));
    return true;
  }

  async #pump() {
    if (this.#pumping) return;
    this.#pumping = true;
    for (let attempt = 0; this.#queue.length && !this.signedOut; ) {
      const entry = this.#queue[0];
      const outcome = await deliver(entry, this.#who, this.say);
      attempt = outcome.kind === "later" ? attempt + 1 : 0;
      this.failing = outcome.kind === "later";
      if (outcome.kind === "later") await this.#pause(attempt);
      else this.#settle(entry, outcome);
      this.onChange();
    }
    this.#pumping = false;
  }

  #settle(entry, outcome) {
    if (outcome.kind === "signed-out") {
      this.signedOut = true;
      return;
    }
    this.#queue.shift();
    const done = outcome.kind !== "refused" || this.#putAside(entry, outcome.problem);
    if (done) this.#storage.removeItem(this.#key("out", entry));
    if (outcome.kind === "sent") this.onSent(entry, outcome.reply);
  }

  // Whether it need not lie among what is to be sent any more.
  #putAside(entry, problem) {
    entry.problem = problem;
    // Nothing to take back: the vote itself was refused, or never came. What stands is no answer
    // that is kept here, and must not be taken back another day.
    const undo = entry.path === "/api/undo";
    const nothing = undo && [404, 409].includes(problem.status);
    if (undo && problem.status === 404) this.forget(entry.body.id);
    // What was too quick is asked again; to send it once more could not help.
    let kept = true;
    if (!nothing && !problem.lookAgain) {
      this.#aside.push(entry);
      kept = this.#write("aside", entry);
    }
    this.onRefused(entry);
    return kept;
  }

  #pause(attempt) {
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
    });
  }

  #key(kind, entry) { return `${this.#prefix}${kind}:${entry.seq}:${entry.body.id}`; }

  // Whether it is kept.
  #write(kind, entry) {
    try {
      this.#storage.setItem(this.#key(kind, entry), JSON.stringify(entry));
      this.#persisted = true;
    } catch {
      this.#persisted = false; // storage is full: the status line warns not to close the page
    }
    return this.#persisted;
  }

  #stored(kind) {
    const keys = Array.from({ length: this.#storage.length }, (_, i) => this.#storage.key(i));
    return keys
      .filter((key) => key.startsWith(`${this.#prefix}${kind}:`))
      .map((key) => JSON.parse(this.#storage.getItem(key)));
  }
}

// Send one message. It counts as sent only when the reply names it.
async function deliver({ path, body }, who, say) {
  let response, reply;
  try {
    response = await fetch(rooted(path), {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Annotator": who },
      body: JSON.stringify(body),
      keepalive: true,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    reply = await response.json();
  } catch {
    if (!response || response.ok || response.status >= 500) return { kind: "later" };
  }
  const { status } = response;
  if (response.ok) return reply?.id === body.id ? { kind: "sent", reply } : { kind: "later" };
  if (status === 401) return { kind: "signed-out" };
  if (status >= 500 || RETRIED.has(status)) return { kind: "later" };
  const message = reply?.error ? errorWords(say, reply) : `(${status})`;
  return { kind: "refused", problem: { status, message, lookAgain: reply?.look_again ?? false } };
}
