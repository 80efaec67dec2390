// Whoever has signed out leaves no page behind; answers that are unsent stay (outbox.js).

globalThis.caches?.delete("semsim-label");
