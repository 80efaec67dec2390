/* What somebody drops or chooses goes to the server in pieces; a lost connection costs a piece. */

import { rooted } from "./root.js";
import { crc32, lengthOf, zipped } from "./zipped.js";

const HOME = rooted("/studio/pictures");
const PIECE = 768 * 1024;
const MOST_BYTES = 4e9, MOST_FILES = 40000;
const LONGEST_WAIT = 30, PATIENCE = 40; // seconds between two tries; tries

export class Refused extends Error {}

export async function ask(path, options = {}) {
  const { json, ...more } = options;
  const told = json === undefined ? more : {
    ...more, method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(json),
  };
  const reply = await fetch(HOME + path, { cache: "no-store", ...told }).catch(lost);
  const content = await reply.json().catch(() => ({}));
  if (reply.ok) return content;
  if (reply.status >= 502) lost();
  const said = typeof content.error === "string" ? content.error : `Not done (${reply.status}).`;
  throw Object.assign(new Refused(said), { status: reply.status, have: content.have });
}

function lost() {
  throw new Error("The studio does not answer. Try again.");
}

/* One file as it is; several as one archive. kinds: endings that the server reads; of other files
   it learns the name only. */
export function bundled(files, kinds) {
  if (files.length > MOST_FILES) throw new Refused(`${files.length} files; up to ${MOST_FILES} are taken at once. Choose a part of them.`);
  const one = files.length === 1 && !files[0][0].includes("/") ? files[0][1] : null;
  const reads = (path) => kinds.some((kind) => path.toLowerCase().endsWith(kind));
  const parts = files
    .filter(([path]) => !path.split("/").some((part) => part.startsWith(".")))
    .map(([path, file]) => [path, reads(path) ? file : null])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (!one && !parts.some(([, file]) => file)) throw new Refused("There is no picture and no table in it.");
  const size = one ? one.size : lengthOf(parts);
  const held = one ? size : parts.reduce((sum, [, file]) => sum + (file ? file.size : 0), 0);
  const tops = new Set(parts.map(([path]) => path.split("/")[0]));
  const name = one ? one.name : `${tops.size === 1 ? [...tops][0] : "pictures"}.zip`;
  if (held > MOST_BYTES) throw new Refused(`${name} has ${shown(held)}; up to 4 GB are taken at once. Choose a part of it.`);
  const known = files.map(([path, file]) => [path, file.size, file.lastModified]);
  const sum = crc32(new TextEncoder().encode(JSON.stringify(known.sort())));
  const bytes = one ? () => [one] : () => zipped(parts);
  return { name, size, key: `${sum.toString(16)}-${files.length}`, one, bytes };
}

async function* pieces(bundle, from) {
  if (bundle.one) {
    for (let at = from; at < bundle.size; at += PIECE) yield [at, bundle.one.slice(at, at + PIECE)];
    return;
  }
  let at = 0, held = [], length = 0; // what was sent before is made again and not sent again
  for await (const bytes of bundle.bytes()) {
    for (let start = 0; start < bytes.length; ) {
      const part = bytes.subarray(start, start + PIECE - length);
      held.push(part);
      length += part.length;
      start += part.length;
      if (length === PIECE) {
        if (at + length > from) yield [at, new Blob(held)];
        at += length;
        held = [];
        length = 0;
      }
    }
  }
  if (length && at + length > from) yield [at, new Blob(held)];
}

const pause = (seconds) => new Promise((wake) => setTimeout(wake, 1000 * seconds));

/* Bytes that are there after a piece, however often it takes. */
async function put(id, at, blob, told, signal) {
  for (let tries = 0; ; tries += 1) {
    try {
      const body = { method: "PUT", body: blob, signal, headers: { "Content-Type": "application/octet-stream" } };
      return (await ask(`/uploads/${id}?at=${at}`, body)).have;
    } catch (problem) {
      if (problem instanceof Refused || signal.aborted || tries >= PATIENCE) throw problem;
      told("The connection is lost. It goes on by itself as soon as it is back.");
      await pause(Math.min(LONGEST_WAIT, 2 ** tries));
    }
  }
}

/* Sends all of it and returns the upload's id. told(words, share): what to show meanwhile. */
export async function send(bundle, told, signal, begun) {
  const { name, size, key } = bundle;
  let { id, have } = await ask("/uploads", { json: { name, size, key } });
  begun(id);
  const start = performance.now(), before = have;
  while (have < size) {
    try {
      for await (const [at, blob] of pieces(bundle, have)) {
        have = await put(id, at, blob, told, signal);
        const seconds = (performance.now() - start) / 1000;
        const left = ((size - have) * seconds) / (have - before || 1);
        told(`${shown(have)} of ${shown(size)}${have < size ? `, ${spoken(left)} left` : ""}`, have / size);
      }
    } catch (problem) {
      if (problem.status !== 409) throw problem;
      have = problem.have;
    }
  }
  return id;
}

function shown(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB`;
}

function spoken(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/* [path, file] of everything that was let go over a page, folders with what is in them. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    found.push([entry.fullPath.replace(/^\//, ""), file]);
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return;
    for (const one of some) await walk(one, found);
  }
}

export function chosen(input) {
  return [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);
}
