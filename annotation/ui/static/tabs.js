// Which tabs of this person are open, so that two of them never work on the same items.

const ANSWER_WITHIN_MS = 80;

// A tab's name survives a reload; a duplicated tab gets a new one.
export async function openTab(who, makeName) {
  const key = `semsim:${who}:tab`;
  const channel = new BroadcastChannel(`semsim:${who}`);
  const alive = new Set();
  let name = null;
  channel.onmessage = ({ data }) => {
    if (data.ask && name) channel.postMessage({ here: name });
    if (data.here) alive.add(data.here);
  };
  channel.postMessage({ ask: true });
  await new Promise((resolve) => setTimeout(resolve, ANSWER_WITHIN_MS));
  const before = recall(key);
  name = before && !alive.has(before) ? before : makeName();
  remember(key, name);
  return { name, isAlive: (other) => alive.has(other), close: () => channel.close() };
}

// where: "localStorage" for what is kept when the page is closed, too.
export function recall(key, where = "sessionStorage") {
  try {
    return globalThis[where].getItem(key);
  } catch {
    return null;
  }
}

export function remember(key, value, where = "sessionStorage") {
  try {
    globalThis[where].setItem(key, value);
  } catch {
    // Forbidden or full: the tab merely starts afresh after a reload.
  }
}
