// The table of items and the page of one: filters work at once, arrows turn pages.

const filters = document.querySelector('#filters');
filters?.addEventListener('change', () => {
  for (const field of filters.elements) if (field.value === '') field.disabled = true;
  filters.submit();
});
addEventListener('pageshow', () => {
  for (const field of filters?.elements ?? []) field.disabled = false;
});
const KEYS = { ArrowLeft: 'prev', ArrowRight: 'next', Escape: 'up' };
addEventListener('keydown', (event) => {
  const busy = event.target.closest?.('input, select, textarea, dialog, [role="region"]');
  const modified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (busy || modified || !KEYS[event.key]) return;
  document.querySelector(`main a[rel="${KEYS[event.key]}"]`)?.click();
});
