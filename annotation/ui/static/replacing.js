// A part of a page becomes what it is now, where that differs: what is open, focused, typed or
// scrolled in it stays. Elements with another name, id, data-key or data-tab are not the same.

const KEPT = ["open", "data-explained"]; // of the reader and of the frame
const key = (one) => [one.nodeName, one.id, one.dataset?.key, one.dataset?.tab].join();
const lasting = (part) => [...part.childNodes].filter((one) => one.className !== "st-more");

export function replace(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (!old.tagName || key(old) !== key(fresh)) return old.replaceWith(fresh);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !KEPT.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !KEPT.includes(name)) old.setAttribute(name, value);
  }
  const [before, after] = [lasting(old), [...fresh.childNodes]];
  for (const [at, one] of after.entries()) {
    if (before[at]) replace(before[at], one);
    else old.append(one);
  }
  for (const one of before.slice(after.length)) one.remove();
}
