// How long an item takes: the person's own recent pace, held near what is expected of anybody
// until there are enough answers to know better. In logarithms, so that neither one long look nor
// one slip of the finger makes the estimate jump.

const RECENT = 50; // answers
const EXPECTED_COUNTS_FOR = 10; // answers
const [SHORTEST_MS, LONGEST_MS] = [200, 60000]; // a span beyond these says no more than they do

// spans: milliseconds between answers, the latest last; expected: milliseconds an item.
export function perItem(spans, expected) {
  const recent = spans.slice(-RECENT).map((span) => Math.log(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, span))));
  const known = recent.reduce((sum, one) => sum + one, EXPECTED_COUNTS_FOR * Math.log(expected));
  return Math.exp(known / (EXPECTED_COUNTS_FOR + recent.length));
}

// What is left to do in words, by `say`.
export function timeLeft(say, items, millisecondsEach) {
  const minutes = (items * millisecondsEach) / 60000;
  if (items === 0) return "";
  return minutes < 1 ? say("label.left_little") : say("label.left", { n: Math.round(minutes) });
}

export class Pace {
  #spans = [];
  #last = null;
  #expected;

  constructor(expected) {
    this.#expected = expected;
  }

  // What the server remembers of this person: the middle time of so many answers.
  begin(count, milliseconds) {
    this.#expected = perItem(Array(Math.min(count, RECENT)).fill(milliseconds), this.#expected);
  }

  note(now) {
    const span = this.#last === null ? Infinity : now - this.#last;
    this.#last = now;
    if (span > LONGEST_MS) return; // a rest is no look
    this.#spans.push(span);
    if (this.#spans.length > RECENT) this.#spans.shift();
  }

  get perItem() {
    return perItem(this.#spans, this.#expected);
  }
}
