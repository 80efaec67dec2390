"""Answers on their way to the server: refused, taken back, and kept where there is no room."""

import page_scripts

# A storage with so many places, and a server that answers what is said by path and number of tries.
PAGE = """
globalThis.addEventListener = () => {};
const held = new Map();
let room = Infinity;
globalThis.localStorage = {
  get length() { return held.size; },
  key: (index) => [...held.keys()][index] ?? null,
  getItem: (key) => held.get(key) ?? null,
  removeItem: (key) => { held.delete(key); },
  setItem: (key, text) => {
    if (!held.has(key) && held.size >= room) throw new Error("no room");
    held.set(key, text);
  },
};
let status = 200;
const arrived = [];
globalThis.fetch = async (address, { body }) => {
  const sent = JSON.parse(body), path = String(address).split("/").at(-1);
  const known = status === 200 && (path === "vote" || arrived.includes(`vote ${sent.id}`));
  if (known) arrived.push(`${path} ${sent.id}`);
  const code = status === 200 ? (known ? 200 : 404) : status;
  return new Response(JSON.stringify(known ? { id: sent.id } : { error: "no" }), { status: code });
};
const calm = (box) => until(() => !box.size);
let count = 0;
const opened = (Outbox, tab = "t") => new Outbox({
  who: "w", tab, say: (name) => name, onChange() {}, onSent() {},
  onRefused(entry) { count += entry.path === "/api/vote" ? -1 : 1; },
});
const vote = (box, id) => { count += 1; box.add("/api/vote", { id, item: id }); };
const undo = (box, id) => {
  if (box.forget(id)) return;
  count -= 1;
  box.add("/api/undo", { id });
};
"""
TOLD = """
return { arrived, count, size: box.size, refused: box.refused.length, kept: [...held.keys()] };
"""


def after(does):
    """What the server got and what is left after `does`, with an outbox called `box`."""
    script = f"(async () => {{ const box = opened(Outbox); {does} await calm(box); {TOLD} }})()"
    return page_scripts.evaluate("outbox.js", "Outbox", script, before=PAGE)


def test_what_was_refused_and_then_taken_back_is_never_sent_again():
    found = after(
        "status = 403; vote(box, 'a'); await calm(box); undo(box, 'a'); status = 200;"
        "count += box.sendRefusedAgain(); vote(box, 'b');"
    )
    expected = {"arrived": ["vote b"], "count": 1, "size": 0, "refused": 0, "kept": []}
    assert found == expected


def test_nor_what_was_taken_back_before_it_was_refused():
    found = after(
        "status = 404; vote(box, 'a'); undo(box, 'a'); await calm(box); status = 200;"
        "count += box.sendRefusedAgain();"
    )
    assert found == {"arrived": [], "count": 0, "size": 0, "refused": 0, "kept": []}


def test_an_answer_and_its_undo_that_were_both_refused_arrive_in_order():
    found = after(
        "status = 403; vote(box, 'a'); undo(box, 'a'); await calm(box); status = 200;"
        "count += box.sendRefusedAgain();"
    )
    assert found["arrived"] == ["vote a", "undo a"]
    assert found["count"] == 0


def test_what_is_refused_counts_again_once_it_is_taken():
    found = after(
        "status = 422; vote(box, 'a'); await calm(box); status = 200;"
        "count += box.sendRefusedAgain();"
    )
    assert found == {"arrived": ["vote a"], "count": 1, "size": 0, "refused": 0, "kept": []}


def test_what_is_refused_where_there_is_no_room_outlives_the_page():
    found = after("status = 422; vote(box, 'a'); room = 1; await calm(box);")
    assert found["refused"] == 1
    assert len(found["kept"]) == 1


def test_an_undo_that_the_server_refuses_for_good_is_not_kept_to_be_sent_another_day():
    """The answer stands: there is none that lies here."""
    found = after(
        "vote(box, 'a'); await calm(box); status = 409; undo(box, 'a'); await calm(box);"
        "status = 200; count += box.sendRefusedAgain();"
    )
    assert found == {"arrived": ["vote a"], "count": 1, "size": 0, "refused": 0, "kept": []}
