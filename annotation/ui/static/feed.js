// The next items, with their pictures decoded before anybody looks at them.

const HELD = 20; // items asked for at once
const REFILL_BELOW = 12;
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

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class SignedOut extends Error {}

// who: whom the page was opened for; the server refuses if somebody else has signed in since.
export async function getJson(path, who) {
  const headers = { Accept: "application/json", ...(who && { "X-Annotator": who }) };
  const response = await fetch(path, { headers, cache: "no-store" });
  if (response.status === 401) throw new SignedOut();
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? `The server answered ${response.status}.`);
  return body;
}

export class Feed {
  #items = [];
  #answered = new Set();
  #asking = false;
  #failures = 0;
  #timer = null;

  // outbox: what the server does not know yet; onChange(): look at `current` again.
  constructor({ tab, who, outbox, onChange, onProgress, onVersion, onSignedOut }) {
    this.tab = tab;
    this.who = who;
    this.outbox = outbox;
    this.onChange = onChange;
    this.onProgress = onProgress;
    this.onVersion = onVersion;
    this.onSignedOut = onSignedOut;
    this.state = "loading";
    this.trouble = "";
    this.completion = null; // {code, page} once all is done
    this.broken = new Set();
  }

  get current() { return this.#items[0]; }
  get tokens() { return this.#items.map((item) => item.item); }

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
    if (!item.ready) this.#load(item);
  }

  // The server did not take the answer: the item may be offered again.
  release(token) { this.#answered.delete(token); }

  close() { clearTimeout(this.#timer); }

  refill() {
    if (this.#items.length < REFILL_BELOW) this.ask();
  }

  // Ask the server, also when there are items enough: it may have stopped this person.
  async ask() {
    if (this.#asking) return;
    this.#asking = true;
    clearTimeout(this.#timer);
    const { calm } = this.outbox;
    try {
      const reply = await this.#next();
      this.#failures = 0;
      this.#accept(reply);
      this.onVersion(reply.version);
      // The server's count is right only if nothing was on its way meanwhile.
      if (calm === this.outbox.calm) this.onProgress(reply.progress);
    } catch (error) {
      this.#failed(error);
    }
    this.#asking = false;
    this.onChange();
  }

  #next() {
    const n = Math.min(100, HELD + this.outbox.size); // the server counts unsent ones as held
    return getJson(`/api/next?tab=${encodeURIComponent(this.tab)}&n=${n}`, this.who);
  }

  #accept(reply) {
    this.trouble = "";
    if (reply.state.startsWith("you-") || reply.state === "elsewhere") this.#items = [];
    this.completion = reply.code ? { code: reply.code, page: reply.done_page } : null;
    const held = new Set(this.tokens);
    const fresh = reply.items.filter(
      ({ item }) => !held.has(item) && !this.#answered.has(item) && !this.broken.has(item),
    );
    fresh.forEach((item) => this.#load(item));
    this.#items.push(...fresh);
    this.state = reply.state;
    if (!fresh.length) this.#askAgainIn(ASK_AGAIN_MS[reply.state]);
  }

  #failed(error) {
    if (error instanceof SignedOut) {
      this.onSignedOut();
      return;
    }
    this.trouble = error instanceof TypeError ? "The server does not answer." : error.message;
    this.#askAgainIn(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures++));
  }

  #askAgainIn(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refill(), ms);
  }

  async #load(item) {
    try {
      item.pictures = await Promise.all(item.images.map(loadPicture));
      item.ready = true;
    } catch (error) {
      if (error instanceof SignedOut) this.onSignedOut();
      else {
        this.broken.add(item.item);
        this.#items = this.#items.filter((other) => other !== item);
        this.refill();
      }
    }
    if (!this.current || this.current === item || !item.ready) this.onChange();
  }
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
      // An <img> does not say why it failed; asking again does. No answer: keep trying.
      const status = await fetch(url).then((response) => response.status, () => 0);
      if (status === 401) throw new SignedOut();
      const gone = status >= 400 && status < 500 && status !== 429;
      if (gone || (status !== 0 && tries >= PICTURE_TRIES)) throw error;
      await sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries));
    }
  }
}
