// How long a person looked before answering, from the first painted frame to the key.

export class StimulusClock {
  #run = 0;
  #paintedAt = null;
  #hiddenAtPaint = 0;
  #hiddenAtShow = 0;
  #hidden = 0;
  #hiddenSince = document.hidden ? performance.now() : null;
  #blurAtShow = 0;
  #blur = 0; // in sight, but another window had the keyboard
  #blurSince = null;

  #onVisibility = () => {
    const now = performance.now();
    if (document.hidden) this.#hiddenSince = now;
    else if (this.#hiddenSince !== null) {
      this.#hidden += now - this.#hiddenSince;
      this.#hiddenSince = null;
    }
    this.#onFocus();
  };

  #onFocus = () => {
    const now = performance.now();
    this.#blur = this.#blurUntil(now);
    this.#blurSince = document.hidden || document.hasFocus() ? null : now;
  };

  constructor() {
    document.addEventListener("visibilitychange", this.#onVisibility);
    for (const type of ["focus", "blur"]) addEventListener(type, this.#onFocus);
    this.#onFocus();
  }

  close() {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    for (const type of ["focus", "blur"]) removeEventListener(type, this.#onFocus);
  }

  // Call when a decoded picture has been put in place. The callback of the second frame runs
  // after the first one, with the picture in it, has been handed to the screen.
  start() {
    const run = ++this.#run;
    this.#paintedAt = null;
    this.#hiddenAtShow = this.#hiddenUntil(performance.now());
    this.#blurAtShow = this.#blurUntil(performance.now());
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      if (run !== this.#run) return;
      this.#paintedAt = now;
      this.#hiddenAtPaint = this.#hiddenUntil(now);
    }));
  }

  // rt_ms is null for an answer that came before the picture was painted.
  read(now) {
    const hidden = this.#hiddenUntil(now);
    const looked = now - this.#paintedAt - (hidden - this.#hiddenAtPaint);
    return {
      rt_ms: this.#paintedAt === null || looked < 0 ? null : Math.round(looked * 10) / 10,
      hidden_ms: Math.round(hidden - this.#hiddenAtShow),
      blur_ms: Math.round(this.#blurUntil(now) - this.#blurAtShow),
    };
  }

  #blurUntil(now) {
    return this.#blur + (this.#blurSince === null ? 0 : Math.max(0, now - this.#blurSince));
  }

  #hiddenUntil(now) {
    return this.#hidden + (this.#hiddenSince === null ? 0 : Math.max(0, now - this.#hiddenSince));
  }
}
