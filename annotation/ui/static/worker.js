// Shows the labelling page where there is no network: the page as it was last, and its scripts.
//
// Pictures and answers are not its business: pictures lie in the browser's own cache, answers in
// localStorage (outbox.js). Whoever signs out, or is found signed out, takes the page along.

const KEPT = "semsim-label";
const PAGE = new URL(".", location.href).pathname.slice(0, -1);
const SCRIPTS = new URL("../static/annotation/", location.href).pathname;
const PATIENCE_MS = 8000; // a network that does not answer in this time is none

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The first time the page came before this script did: it says what it consists of.
self.addEventListener("message", (event) => {
  const addresses = (event.data?.keep ?? []).filter((address) => isOurs(new URL(address, location.href)));
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(addresses)));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && isOurs(new URL(request.url))) event.respondWith(answer(request));
});

function isOurs({ origin, pathname }) {
  return origin === location.origin && (pathname === PAGE || pathname.startsWith(SCRIPTS));
}

// The network's answer, else the one kept.
async function answer(request) {
  const fresh = keepFresh(request);
  const kept = await caches.match(request, { cacheName: KEPT, ignoreVary: true });
  if (!kept) return fresh;
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS, kept));
  return Promise.race([fresh.catch(() => kept), late]);
}

async function keepFresh(request) {
  const response = await fetch(request);
  if (response.ok && !response.redirected) {
    const copy = response.clone();
    // A full disk keeps nothing; the page is there all the same.
    await caches.open(KEPT).then((kept) => kept.put(request, copy)).catch(() => {});
  } else if (request.mode === "navigate" && response.status < 500) {
    await caches.delete(KEPT); // led elsewhere: nobody is at work here
  }
  return response;
}
