// Which physical key stands for which of the usual ones, where a person has changed them.
// Everything else knows the usual codes only.

const STORED = "semsim:bindings";
const TAKEN = new Set(["Backspace", "Escape", "Tab", "Enter", "Slash"]); // undo, help, moving about

export class Bindings {
  #keyOf = new Map(); // usual code → the code this person presses instead

  constructor(storage = localStorageOrNothing()) {
    this.storage = storage;
    for (const [usual, pressed] of Object.entries(read(storage))) this.#swap(usual, pressed);
  }

  keyOf(usual) {
    return this.#keyOf.get(usual) ?? usual;
  }

  // The usual code a pressed key stands for, among `usuals`; undefined where it stands for none.
  meaningOf(pressed, usuals) {
    return usuals.find((usual) => this.keyOf(usual) === pressed);
  }

  // Let `pressed` stand for `usual`. Returns whether the key may be used.
  assign(usual, pressed) {
    if (!pressed || TAKEN.has(pressed) || /^(Control|Shift|Alt|Meta|CapsLock|F\d)/.test(pressed)) return false;
    this.#swap(usual, pressed);
    this.#save();
    return true;
  }

  // Whatever the key stood for gets the one that became free, also where this study has no such
  // answer: another study may have both.
  #swap(usual, pressed) {
    const [former] = [...this.#keyOf].find(([, key]) => key === pressed) ?? [pressed];
    this.#keyOf.set(former, this.keyOf(usual));
    this.#keyOf.set(usual, pressed);
  }

  reset() {
    this.#keyOf.clear();
    this.#save();
  }

  #save() {
    try {
      this.storage?.setItem(STORED, JSON.stringify(Object.fromEntries(this.#keyOf)));
    } catch {
      // A full or closed storage: the keys hold until the page is left.
    }
  }
}

function read(storage) {
  try {
    return JSON.parse(storage?.getItem(STORED) ?? "{}");
  } catch {
    return {};
  }
}

function localStorageOrNothing() {
  try {
    return localStorage;
  } catch {
    return null; // cookies and storage are blocked
  }
}
