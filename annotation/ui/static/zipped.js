/* Many files as one archive that is never whole in memory: stored, not compressed, in order of
   name, so that the same files make the same bytes and a sender can go on where it was cut off. */

const TABLE = new Uint32Array(256).map((_, byte) => {
  let code = byte;
  for (let bit = 0; bit < 8; bit += 1) code = code & 1 ? (code >>> 1) ^ 0xedb88320 : code >>> 1;
  return code;
});
const LATER_AND_UTF8 = 0x0808; // sum and sizes follow the content; names are UTF-8
const A_DAY = 0x5821; // 2024-01-01, so that bytes depend on names and contents only
const LOCAL = 30, BEHIND = 16, CENTRAL = 46, END = 22;
const READ_AT_ONCE = 4 * 1024 * 1024;

export function crc32(bytes, before = 0) {
  let code = ~before;
  for (let i = 0; i < bytes.length; i += 1) code = TABLE[(code ^ bytes[i]) & 255] ^ (code >>> 8);
  return ~code >>> 0;
}

/* parts: [name, file or null where only the name is told], sorted by name. */
export function lengthOf(parts) {
  const names = parts.map(([name]) => new TextEncoder().encode(name).length);
  const around = names.reduce((sum, name) => sum + LOCAL + BEHIND + CENTRAL + 2 * name, END);
  return parts.reduce((sum, [, file]) => sum + (file ? file.size : 0), around);
}

function record(length, signature, fill) {
  const view = new DataView(new ArrayBuffer(length));
  view.setUint32(0, signature, true);
  fill((at, value, wide) => (wide ? view.setUint32 : view.setUint16).call(view, at, value, true));
  return new Uint8Array(view.buffer);
}

async function* contentOf(file) {
  for (let at = 0; at < file.size; at += READ_AT_ONCE) {
    yield new Uint8Array(await file.slice(at, at + READ_AT_ONCE).arrayBuffer());
  }
}

export async function* zipped(parts) {
  const made = [];
  let place = 0;
  for (const [path, file] of parts) {
    const name = new TextEncoder().encode(path);
    const one = { name, place, sum: 0, size: 0 };
    yield record(LOCAL, 0x04034b50, (put) => {
      put(4, 20), put(6, LATER_AND_UTF8), put(12, A_DAY), put(26, name.length);
    });
    yield name;
    for await (const bytes of file ? contentOf(file) : []) {
      one.sum = crc32(bytes, one.sum);
      one.size += bytes.length;
      yield bytes;
    }
    yield record(BEHIND, 0x08074b50, (put) => {
      put(4, one.sum, true), put(8, one.size, true), put(12, one.size, true);
    });
    place += LOCAL + name.length + one.size + BEHIND;
    made.push(one);
  }
  for (const one of made) {
    yield record(CENTRAL, 0x02014b50, (put) => {
      put(4, 20), put(6, 20), put(8, LATER_AND_UTF8), put(14, A_DAY);
      put(16, one.sum, true), put(20, one.size, true), put(24, one.size, true);
      put(28, one.name.length), put(42, one.place, true);
    });
    yield one.name;
  }
  const central = made.reduce((sum, one) => sum + CENTRAL + one.name.length, 0);
  yield record(END, 0x06054b50, (put) => {
    put(8, made.length), put(10, made.length), put(12, central, true), put(16, place, true);
  });
}
