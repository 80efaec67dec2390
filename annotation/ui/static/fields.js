// The fields that settings of a study are drawn as (setting.html).

// What a field holds: a text, or whether a switch is on.
export function valueOf(field) {
  return field.type === 'checkbox' ? field.checked : field.value;
}

// Marks a field as refused; the reason stands below it.
export function markWrong(field, text) {
  const note = document.createElement('p');
  note.textContent = text;
  note.id = `wrong-${field.dataset.setting ?? field.id}`;
  note.className = 'nw-wrong';
  field.setAttribute('aria-invalid', 'true');
  field.setAttribute('aria-describedby', note.id);
  field.closest('.nw-field').append(note);
}

export function unmarkAll() {
  for (const note of document.querySelectorAll('.nw-wrong')) note.remove();
  for (const field of document.querySelectorAll('[data-setting][aria-invalid], #gold[aria-invalid]')) {
    field.removeAttribute('aria-invalid');
    field.removeAttribute('aria-describedby');
  }
}

// The first marked field in a part of the page gets the focus; answers whether there is one.
export function goToWrong(part) {
  const box = part.querySelector('.nw-wrong')?.closest('.nw-field');
  if (!box) return false;
  const more = box.closest('details');
  if (more) more.open = true;
  [...box.querySelectorAll('input, select, textarea, button')].find((one) => !one.hidden)?.focus();
  return true;
}
