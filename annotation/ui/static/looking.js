// Which views of a picture a person looks at: the study's own, and others while a key is held.

// By the view of the study, what else there is to see, the most different first.
const OTHERS = {
  squares: ["smooth-and-small"],
  smooth: ["smooth-and-small", "squares"],
  "smooth-and-small": ["squares"],
};

export class Looking {
  #own = "squares";
  #seen = [];
  #turn = 0;
  #held = false;

  // onChange(): the view is another one now; onHeld(held): of a button.
  constructor(onChange, onHeld) {
    this.onChange = onChange;
    this.onHeld = onHeld;
  }

  get view() { return this.#held ? this.#others[(this.#turn - 1) % this.#others.length] : this.#own; }
  // Those looked at since the picture came, the first one first.
  get seen() { return [...this.#seen]; }

  get #others() { return OTHERS[this.#own]; }

  // A new picture, in the view of the study's settings.
  begin(own) {
    this.#own = own;
    this.#hold(false);
    this.#turn = 0;
    this.#seen = [own];
  }

  // Each time the key is pressed another one of the others comes.
  hold() {
    if (this.#held) return;
    this.#hold(true);
    this.#turn += 1;
    if (!this.#seen.includes(this.view)) this.#seen.push(this.view);
    this.onChange();
  }

  release() {
    if (!this.#held) return;
    this.#hold(false);
    this.onChange();
  }

  #hold(held) {
    this.#held = held;
    this.onHeld(held);
  }
}
