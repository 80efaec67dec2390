// A part of a page gives way to what it is now; its tables stay where somebody has scrolled them.

const scrolls = (part) => [...part.querySelectorAll('.st-scroll')];
const name = (one) => one.getAttribute('aria-label');

export function replace(old, fresh) {
  const places = scrolls(old).map((one) => [name(one), { top: one.scrollTop, left: one.scrollLeft }]);
  const before = new Map(places);
  old.replaceWith(fresh);
  for (const one of scrolls(fresh)) one.scrollTo(before.get(name(one)) ?? {});
}
