// Practice items say what they were. Nothing goes on by itself: people read at their own pace.

export class Feedback {
  #vote = null; // the answer whose feedback is awaited or being read
  #told = false;

  // onEnd(): the next item may be shown.
  constructor(view, onEnd) {
    this.view = view;
    this.onEnd = onEnd;
    view.$(".sl-go-on").addEventListener("click", () => this.end());
  }

  get open() { return this.#vote !== null; }

  await(vote) {
    this.#vote = vote;
    this.#told = false;
    this.view.feedback(this.view.say("label.practice_saving"));
  }

  // The server's reply to an answer; `expected` is missing where there is nothing to be said.
  tell(id, expected) {
    if (this.#vote?.id !== id) return;
    if (expected === undefined) return this.drop(id);
    this.#told = true;
    const right = expected === this.#vote.answer;
    const words = { answer: this.view.said({ answer: expected }), given: this.view.said(this.#vote) };
    this.view.feedback(this.view.say(`label.practice_${right ? "right" : "wrong"}`, words), right);
  }

  // Undone, or not taken by the server: there will be no feedback.
  drop(id) {
    if (this.#vote === null || (id !== undefined && this.#vote.id !== id)) return;
    this.#close();
  }

  end() {
    if (this.#told) this.#close();
  }

  #close() {
    this.#vote = null;
    this.#told = false;
    this.view.feedback("");
    this.onEnd();
  }
}
