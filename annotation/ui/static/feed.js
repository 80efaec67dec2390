// The next items, with their pictures decoded before anybody looks at them.
//
// Many more are held, with their pictures in the browser's cache, for when the network goes. The
// server says how many: in a small study the rest is for others.

import { rooted } from "./root.js";

const AT_HAND = 20; // decoded items, and how many are asked for while there are none
const HELD = 200; // ten minutes of work
const STEP = 20; // how many fewer than there could be make it worth asking
const REFILL_BELOW = 12;
// Between two fillings, by half more or less: a team that begins together shares one server.
const REST_MS = 5000;
const PICTURE_TRIES = 4;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
// How long until it is worth asking again, by what the server said.
const ASK_AGAIN_MS = {
  ready: 2000,
  waiting: 4000,
  paused: 8000,
  closed: 60000,
  finished: 30000,
  "you-paused": 8000,
  "you-stopped": 60000,
  elsewhere: 2000,
};

const OVER = new Set(["closed", "elsewhere"]); // no answer counts any more
const PATIENCE_MS = 60000; // a network that has gone may not say so

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class SignedOut extends Error {}

// who: whom the page was opened for; the server refuses if somebody else has signed in since.
export async function getJson(path, who) {
  const headers = { Accept: "application/json", ...(who && { "X-Annotator": who }) };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const response = await fetch(rooted(path), { headers, cache: "no-store", signal });
  if (response.status === 401) throw new SignedOut();
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? `${response.status}`);
  return body;
}

export class Feed {
  #items = [];
  #answered = new Set();
  #askBelow = REFILL_BELOW;
  #asking = false;
  #outdated = false; // what was asked last was asked before the server knew all answers
  #caching = false;
  #failures = 0;
  #resting = false; // enough is at hand to let others go first
  #asleep = false; // nobody is there
  #timer = null;

  // outbox: what the server does not know yet; onChange(): look at `current` again; onAlone(): no
  // server has answered since the page was opened.
  constructor({ tab, who, outbox, onChange, onProgress, onVersion, onSignedOut, onAlone }) {
    this.tab = tab;
    this.who = who;
    this.outbox = outbox;
    this.onChange = onChange;
    this.onProgress = onProgress;
    this.onVersion = onVersion;
    this.onSignedOut = onSignedOut;
    this.onAlone = onAlone;
    this.state = "loading";
    this.trouble = ""; // the name of the text that says what is wrong
    this.completion = null; // {code, page} once all was done
    this.broken = new Set();
  }

  get current() { return this.#items[0]; }
  get tokens() { return this.#items.map((item) => item.item); }

  // Those whose pictures are in this browser.
  get atHand() { return this.#items.filter((item) => item.ready || item.cached); }

  // Go on with items that were at hand before.
  restore(items) {
    this.#items = items.filter(({ item }) => !this.#answered.has(item));
    this.#loadNear();
  }

  // Items whose answers are still in the outbox are not to be shown again.
  skip(items) { items.forEach((item) => this.#answered.add(item)); }

  take() {
    const item = this.#items.shift();
    this.#answered.add(item.item);
    this.refill();
    return item;
  }

  putBack(item) {
    this.#answered.delete(item.item);
    this.#items = [item, ...this.#items.filter((other) => other.item !== item.item)];
    this.#loadNear();
  }

  // The server did not take the answer: the item may be offered again.
  release(token) { this.#answered.delete(token); }

  close() { clearTimeout(this.#timer); }

  // To ask is to go on holding what is here: not while nobody looks at it.
  rest() {
    this.#asleep = true;
    clearTimeout(this.#timer);
  }

  // Others may have had it meanwhile.
  wake() {
    if (!this.#asleep) return;
    this.#asleep = false;
    this.ask();
  }

  refill() {
    this.#loadNear();
    const few = this.#items.length < (this.#resting ? REFILL_BELOW : this.#askBelow);
    if (few || this.trouble) this.ask();
  }

  // The server knows every answer now: what it said before may be of more than there is.
  saved() {
    this.#outdated = this.#asking;
    this.refill();
  }

  // Ask the server, also when there are items enough: it may have stopped this person.
  async ask() {
    if (this.#asking) return;
    this.#asking = true;
    this.#resting = false;
    clearTimeout(this.#timer);
    const { calm } = this.outbox;
    let more = false;
    try {
      const n = this.#wanted();
      const reply = await this.#next(n);
      this.#failures = 0;
      more = this.#accept(reply, n);
      this.onVersion(reply.version);
      // The server's count is right only if nothing was on its way meanwhile.
      if (calm === this.outbox.calm) this.onProgress(reply.progress);
    } catch (error) {
      this.#failed(error);
    }
    this.#asking = false;
    if (this.#outdated && !this.current) {
      this.#outdated = false;
      return this.ask();
    }
    this.onChange();
    if (!more) return;
    this.#resting = true;
    this.#askAgainIn(REST_MS * (0.5 + Math.random()));
  }

  // A few at first, which come at once. Never very many more, or the answers of others would wait.
  #wanted() {
    const held = this.#items.length;
    return Math.min(HELD, held ? held + 2 * STEP : AT_HAND);
  }

  #next(n) {
    // The server counts their items as held, and those that cannot be shown.
    const unsent = Math.min(HELD, this.outbox.size + this.broken.size);
    return getJson(`/api/next?tab=${encodeURIComponent(this.tab)}&n=${n}&unsent=${unsent}`, this.who);
  }

  // Whether all `n` came, so that asking again may bring more.
  #accept(reply, n) {
    this.trouble = "";
    if (reply.state.startsWith("you-") || OVER.has(reply.state)) this.#items = [];
    this.completion = reply.code ? { code: reply.code, page: reply.done_page } : null;
    const known = new Map(this.#items.map((item) => [item.item, item]));
    const near = this.#items.slice(0, AT_HAND);
    const barred = new Set([...this.#answered, ...this.broken, ...near.map(({ item }) => item)]);
    // What lies further ahead is held for as long as the server says so, and in its order.
    const further = reply.items.filter(({ item }) => !barred.has(item));
    this.#items = [...near, ...further.map((item) => known.get(item.item) ?? item)];
    const fresh = further.some(({ item }) => !known.has(item));
    const more = fresh && n < HELD && this.#items.length >= n;
    this.#askBelow = Math.max(REFILL_BELOW, (more ? HELD : this.#items.length) - STEP);
    this.#loadNear();
    this.#cache();
    this.state = reply.state;
    if (!fresh) this.#askAgainIn(ASK_AGAIN_MS[reply.state]);
    return more;
  }

  #failed(error) {
    if (error instanceof SignedOut) {
      this.onSignedOut();
      return;
    }
    const nobody = error instanceof TypeError || error.name === "TimeoutError";
    this.trouble = nobody ? "label.no_answer" : "label.trouble";
    if (this.state === "loading" && this.#failures === 0) this.onAlone?.();
    this.#askAgainIn(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures++));
  }

  #askAgainIn(ms) {
    clearTimeout(this.#timer);
    if (this.#asleep) return;
    this.#timer = setTimeout(() => {
      this.#resting = false;
      this.refill();
    }, ms);
  }

  #loadNear() {
    if (this.outbox.signedOut) return;
    this.#items.slice(0, AT_HAND).filter((item) => !item.loading).forEach((item) => this.#load(item));
  }

  // One after the other, so that nothing else has to wait for them.
  async #cache() {
    if (this.#caching) return;
    this.#caching = true;
    for (let item; (item = this.#items.find((one) => !one.cached && !one.loading)); ) {
      item.cached = (await Promise.all(item.images.map(cachePicture))).every(Boolean);
      if (!item.cached) break; // no network; the next refill goes on
    }
    this.#caching = false;
  }

  async #load(item) {
    item.loading = true;
    try {
      item.pictures = await Promise.all(item.images.map(loadPicture));
      item.ready = true;
    } catch (error) {
      if (error instanceof SignedOut) {
        item.loading = false;
        this.onSignedOut();
      } else {
        this.broken.add(item.item);
        this.#items = this.#items.filter((other) => other !== item);
        this.refill();
      }
    }
    if (!this.current || this.current === item || !item.ready) this.onChange();
  }
}

// Whether the server answered: what it said shows when the picture is loaded.
function cachePicture(url) {
  const got = fetch(url, { priority: "low" }).then((response) => response.blob());
  return got.then(() => true, () => false);
}

async function loadPicture(url) {
  for (let tries = 1; ; tries++) {
    try {
      const picture = new Image();
      picture.decoding = "sync";
      picture.src = url;
      await picture.decode();
      return picture;
    } catch (error) {
      // An <img> does not say why it failed; asking again does. No answer yet: keep trying.
      const status = await fetch(url).then((response) => response.status, () => 0);
      if (status === 401) throw new SignedOut();
      const gone = status >= 400 && status < 500 && status !== 429;
      const later = status === 0 || status === 503; // what keeps the pictures does not answer
      if (gone || (!later && tries >= PICTURE_TRIES)) throw error;
      await sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries));
    }
  }
}
