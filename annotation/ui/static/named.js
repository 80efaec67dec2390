// Texts by name: rows of a name and what stands for it, where a field keeps a JSON object of them.

const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);
const read = (text) => {
  try {
    return Object.entries(JSON.parse(text || '{}'));
  } catch {
    return [];
  }
};

// area: the field, which is hidden. usual: names to choose from, with what usually stands there; null
// where any name may be. Returns `draw`, which draws the rows anew after the field was set.
export function namedTexts(area, usual = null) {
  const rows = make('ul', { className: 'nw-named' });
  const add = make('button', { type: 'button', className: 'st-button', textContent: 'Add' });
  area.hidden = true;
  area.after(rows, add);

  const names = () => [...rows.querySelectorAll('[data-name]')];
  function keep() {
    const pairs = [...rows.children].map((row) => [...row.querySelectorAll('[data-name], [data-text]')].map((one) => one.value));
    const full = pairs.filter(([name, text]) => name.trim() && text.trim());
    area.value = full.length ? JSON.stringify(Object.fromEntries(full)) : '';
    for (const one of names()) {
      const twice = names().some((other) => other !== one && other.value && other.value === one.value);
      one.setCustomValidity?.(twice ? 'This name stands in another row as well.' : '');
      one.setAttribute('aria-invalid', twice);
      for (const option of one.options ?? []) {
        option.disabled = option.value !== one.value && names().some((other) => other.value === option.value);
      }
    }
  }

  function chooser(name) {
    if (!usual) return make('input', { value: name, placeholder: 'Name of the class' });
    const select = make('select');
    const known = Object.hasOwn(usual, name) ? Object.entries(usual) : [[name, name], ...Object.entries(usual)];
    for (const [key, words] of known) select.append(new Option(key ? `${words.slice(0, 60)}${words.length > 60 ? '…' : ''} (${key})` : 'Which text?', key));
    select.value = name;
    return select;
  }

  function row(name = '', text = '') {
    const item = make('li');
    const named = chooser(name);
    const stands = make('textarea', { value: text, rows: 1 });
    const away = make('button', { type: 'button', className: 'st-button', textContent: '×', title: 'Take this row away' });
    named.dataset.name = stands.dataset.text = '';
    named.setAttribute('aria-label', usual ? 'The usual text' : 'Name of the class');
    stands.setAttribute('aria-label', usual ? 'Your words' : 'Shown as');
    away.setAttribute('aria-label', 'Take this row away');
    const suggest = () => { stands.placeholder = usual?.[named.value] ?? 'Shown as'; };
    named.addEventListener('input', suggest);
    away.addEventListener('click', () => {
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      keep();
      (next?.querySelector('[data-name]') ?? add).focus();
      area.dispatchEvent(new Event('input', { bubbles: true }));
    });
    suggest();
    item.append(named, stands, away);
    rows.append(item);
    return named;
  }

  rows.addEventListener('input', keep);
  add.addEventListener('click', () => {
    row().focus();
    keep();
  });
  function draw() {
    rows.replaceChildren();
    for (const [name, text] of read(area.value)) row(name, text);
    keep();
  }
  draw();
  return { draw };
}
