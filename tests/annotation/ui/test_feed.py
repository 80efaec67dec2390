"""What the labelling page asks the server for, and a server or a disk that leaves it alone."""

import page_scripts
import pytest

QUIET = """
const quiet = { calm: 0, size: 0 };
const nothing = () => {};
const all = { onChange: nothing, onProgress: nothing, onVersion: nothing, onSignedOut: nothing };
"""
SILENT = (
    QUIET
    + """
const patience = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (ms) => patience(ms / 1000);
globalThis.fetch = (address, { signal } = {}) => new Promise((_, fail) => {
  setTimeout(() => fail(new Error("asked for ever")), limit(20));
  signal?.addEventListener("abort", () => fail(signal.reason));
});
"""
)


def test_a_server_that_never_answers_is_said_to_be_gone_and_asked_again():
    asked = "feed.ask().then(() => { feed.close(); return feed.trouble; })"
    script = f"(() => {{ const feed = new Feed({{ outbox: quiet, ...all }}); return {asked}; }})()"
    assert page_scripts.evaluate("feed.js", "Feed", script, before=SILENT) == "label.no_answer"


GONE = (
    QUIET
    + """
const items = Array.from({ length: 24 }, (_, i) => ({ item: `${i}`, images: [`/api/image/${i}`] }));
globalThis.Image = class { decode() { return Promise.reject(new Error("no picture")); } };
globalThis.fetch = async (address) => {
  if (address.includes("image")) return new Response("{}", { status: 404 });
  const unsent = Number(new URL(address, "http://here").searchParams.get("unsent"));
  const given = items.slice(0, 20 + unsent); // a share of twenty
  return Response.json({ state: "ready", items: given, version: 1, progress: {} });
};
"""
)


def test_pictures_that_are_gone_keep_no_others_away():
    script = """(async () => {
        const feed = new Feed({ outbox: quiet, ...all });
        await feed.ask();
        await until(() => feed.broken.size >= 20);
        await feed.ask();
        await until(() => !feed.tokens.length);
        feed.close();
        return feed.broken.size;
    })()"""
    assert page_scripts.evaluate("feed.js", "Feed", script, before=GONE) == 24


CLOSING = (
    QUIET
    + """
const items = [1, 2, 3].map((n) => ({ item: `${n}`, images: [`/api/image/${n}`] }));
globalThis.Image = class { async decode() {} };
const replies = [{ state: "ready", items }, { state: told, items: [] }];
globalThis.fetch = async () => Response.json({ ...replies.shift(), version: 1, progress: {} });
"""
)


@pytest.mark.parametrize(("state", "left"), [("closed", 0), ("you-stopped", 0), ("paused", 3)])
def test_of_a_closed_study_nothing_is_shown_whose_answers_could_not_count(state, left):
    script = """(async () => {
        const feed = new Feed({ outbox: quiet, ...all });
        await feed.ask();
        await feed.ask();
        feed.close();
        return feed.tokens.length;
    })()"""
    before = f"const told = {state!r};{CLOSING}"
    assert page_scripts.evaluate("feed.js", "Feed", script, before=before) == left


ASKED = (
    QUIET
    + """
let asked = 0;
globalThis.Image = class { async decode() {} };
globalThis.fetch = async (address) => {
  if (!address.includes("next")) return new Response("");
  asked += 1;
  const items = [{ item: "1", images: ["/api/image/1"] }];
  return Response.json({ state: "ready", items, version: 1, progress: {} });
};
const due = new Map();
let timers = 0;
globalThis.setTimeout = (does) => (due.set(++timers, does), timers);
globalThis.clearTimeout = (timer) => due.delete(timer);
const pass = () => {
  const now = [...due.values()];
  due.clear();
  now.forEach((does) => does());
};
"""
)


def test_nobody_is_asked_for_where_nobody_is_there():
    """Asking renews what is held, which others wait for."""
    script = """(async () => {
        const feed = new Feed({ outbox: quiet, ...all });
        await feed.ask();
        await feed.ask(); // nothing new: from now on it asks by itself
        pass();
        await until(() => due.size);
        const awake = asked;
        feed.rest();
        const asleep = due.size;
        feed.wake();
        await until(() => due.size);
        feed.close();
        return [awake, asleep, asked];
    })()"""
    found = page_scripts.evaluate("feed.js", "Feed", script, before=ASKED)
    assert found == [3, 0, 4]


WORKER = """
globalThis.location = new URL("http://here/label/worker.js");
const on = {};
globalThis.self = { addEventListener: (type, handler) => { on[type] = handler; } };
const full = { put: async () => { throw new Error("no room"); } };
globalThis.caches = { open: async () => full, match: async () => undefined };
globalThis.fetch = async () => new Response("the page");
const request = { method: "GET", url: "http://here/label", mode: "navigate" };
const shown = () => new Promise((resolve, fail) => {
  const respondWith = (answer) => answer.then((page) => page.text()).then(resolve, fail);
  on.fetch({ request, respondWith });
});
"""


def test_a_disk_that_is_full_does_not_keep_the_page_away():
    assert page_scripts.evaluate("worker.js", "", "shown()", before=WORKER) == "the page"


LAST = (
    QUIET
    + """
let asked = 0, shown = [];
let first; // is answered after the server knows the last vote
globalThis.fetch = (address) => {
  asked += 1;
  const reply = (state) => Response.json({ state, items: [], version: 1, progress: {} });
  if (asked > 1) return Promise.resolve(reply("finished"));
  return new Promise((go) => { first = () => go(reply("waiting")); });
};
"""
)


def test_who_is_done_is_told_so_at_once_and_not_to_wait():
    script = """(async () => {
        const onChange = () => shown.push(feed.state);
        const feed = new Feed({ outbox: quiet, ...all, onChange });
        const asking = feed.ask();
        feed.saved();
        first();
        await asking;
        feed.close();
        return [asked, ...shown].join(" ");
    })()"""
    assert page_scripts.evaluate("feed.js", "Feed", script, before=LAST) == "2 finished"
