// The frame beside every page of the studio: light or dark, side bar, questions, toasts, words.
// A script and no module, so that it runs before the page is drawn and nothing jumps.
(() => {
  const root = document.documentElement;
  const home = new URL('../../studio/', document.currentScript.src).pathname; // of the studio
  const EVERY = 5000; // milliseconds between two looks at what runs
  const LATE = 60000; // milliseconds after which a page that shows nothing says so
  const MOST_AGAIN = 3; // times that such a page is loaded again by itself
  const LOST = 'A part of this page has not come.';

  // --- light or dark: the address, else what was chosen, else the system
  const system = matchMedia('(prefers-color-scheme: dark)');
  const address = () => new URLSearchParams(location.search);
  function isDark() {
    const wanted = address().get('__theme') || kept('studio-theme') || 'system';
    return wanted === 'system' ? system.matches : wanted === 'dark';
  }
  function kept(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  }
  function keep(name, value) {
    try { localStorage.setItem(name, value); } catch { /* a browser that keeps nothing */ }
  }
  function paint() {
    for (const one of [root, document.body]) {
      if (one && one.classList.contains('dark') !== isDark()) one.classList.toggle('dark', isDark());
    }
  }
  paint();
  system.addEventListener('change', paint);

  // --- what is pressed before a page's own scripts have come is done when they have
  let pressed = null;
  function hold(event) {
    const button = event.target.closest('button');
    if (!button) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    pressed = button;
  }
  function release() {
    removeEventListener('click', hold, true);
    if (pressed?.isConnected) pressed.click();
  }
  if (document.readyState === 'loading') {
    addEventListener('click', hold, true);
    addEventListener('DOMContentLoaded', release, { once: true }); // after deferred scripts
  }

  // --- the page that this is
  const inStudio = `${location.pathname}/`.startsWith(home);
  const path = inStudio ? location.pathname.slice(home.length).replace(/\/+$/, '') : 'elsewhere';

  // --- side bar
  const bar = document.createElement('aside');
  bar.id = 'studio-frame';
  bar.setAttribute('aria-label', 'Studio');
  const opener = document.createElement('button');
  opener.id = 'studio-opener';
  opener.type = 'button';
  opener.textContent = 'Menu';
  opener.setAttribute('aria-controls', bar.id);
  const skip = document.createElement('a');
  skip.id = 'studio-skip';
  skip.href = '#studio-head';
  skip.textContent = 'Skip to the page';
  skip.addEventListener('click', (event) => {
    event.preventDefault(); // the address may name a step of the page
    const head = document.querySelector('h1');
    if (head) head.tabIndex = -1;
    head?.focus();
  });
  function drawer(open) {
    bar.toggleAttribute('data-open', open);
    opener.setAttribute('aria-expanded', String(open));
  }

  // Only the process that drew a page of Gradio knows what it was drawn with: its events say which
  // that is, and another refuses them.
  const drawn = document.querySelector('meta[name=studio-process]');
  const ANSWERED_BY = 'x-studio-process';
  function sayStanding(id, text, way) {
    if (!document.getElementById(id)) toasts.append(element('p', { className: 'st-toast', id }, text, way));
  }
  // Stands until the page is loaded again, also where the next answer is of the right process.
  function sayReload(id, text) {
    const again = element('button', { type: 'button', className: 'st-button', textContent: 'Reload' });
    again.addEventListener('click', () => location.reload());
    sayStanding(id, text, again);
  }
  const sayOther = () => sayReload('studio-other', drawn.dataset.other);

  // Gradio asks for each of its scripts once and draws nothing where one does not come. Such a page
  // is loaded again, a few times; one on which somebody may have filled in something says so.
  const AGAIN = 'studio-again'; // how often, of this tab
  const isDrawn = () => !drawn || document.querySelector('gradio-app h1');
  let leaves = false;
  function sayLost() {
    if (leaves) return;
    let before = Infinity; // a browser that keeps nothing would not end
    try { before = Number(sessionStorage.getItem(AGAIN)); } catch { /* the page says it */ }
    leaves = !isDrawn() && before < MOST_AGAIN;
    if (!leaves) return sayReload('studio-lost', LOST);
    sessionStorage.setItem(AGAIN, before + 1);
    setTimeout(() => location.reload(), 1000 * 2 ** before);
  }
  addEventListener('vite:preloadError', sayLost);
  addEventListener('error', ({ target }) => {
    const from = target instanceof Element && target.matches('script, link[rel=stylesheet]') && (target.src || target.href);
    if (from && new URL(from).origin === location.origin) sayLost();
  }, true);
  setTimeout(() => { if (!isDrawn()) sayReload('studio-late', LOST); }, LATE);

  // What is filled in stays: somebody who has signed in elsewhere presses again.
  function saySignedOut() {
    const to = { href: home, target: '_blank', className: 'st-button', textContent: 'Sign in' };
    sayStanding('studio-signed-out', PRESS_AGAIN, element('a', to));
  }
  if (drawn) {
    const fetchAny = window.fetch;
    window.fetch = async (asked, given) => {
      const address = new URL(asked.url ?? asked, location.href).pathname;
      if (!address.startsWith(home) || !/\/gradio_api\/(run|queue)\//.test(address)) {
        return fetchAny(asked, given);
      }
      const headers = new Headers(given?.headers ?? asked.headers);
      headers.set(ANSWERED_BY, drawn.content);
      const before = document.getElementById('studio-signed-out');
      const answer = await fetchAny(asked, { ...given, headers });
      if (answer.status === 409) sayOther();
      if (answer.status === 401) saySignedOut();
      else before?.remove();
      return answer;
    };
  }

  const NOBODY = 'The studio does not answer; this page may be out of date.';
  const PRESS_AGAIN = 'You are signed out: nothing was done. Sign in in another tab, then press again.';
  const SIGNED_OUT = 'You are signed out. Load the page again.';
  const inHand = (part) => part.querySelector('#st-study')?.value;

  // Another tab may have another study in hand meanwhile: the bar stays with the one that it shows.
  async function fetched() {
    const study = address().get('study') || inHand(bar);
    const asked = new URLSearchParams({ at: path, ...(study ? { study } : {}) });
    // Not asked for as a page: whoever is signed out is told so and not led to where one signs in.
    const answer = await fetch(`${home}frame?${asked}`).catch(() => null);
    if (!answer?.ok) throw new Error(answer?.status === 401 ? SIGNED_OUT : NOBODY);
    if (drawn && answer.headers.get(ANSWERED_BY) !== drawn.content) sayOther();
    const holder = document.createElement('template');
    holder.innerHTML = await answer.text();
    return { content: holder.content, news: answer.headers.get('x-studio-news') };
  }
  async function draw() {
    try {
      const { content, news } = await fetched();
      bar.removeAttribute('data-lost');
      dispatchEvent(new CustomEvent('studio:looked', { detail: { news, study: inHand(content) } }));
      const places = (part) => [...part.querySelectorAll('[data-live]')];
      const same = bar.childElementCount > 0 && places(bar).length === places(content).length
        && inHand(bar) === inHand(content);
      if (!same) {
        bar.replaceChildren(content);
        return;
      }
      for (const fresh of places(content)) {
        const old = bar.querySelector(`[data-live="${fresh.dataset.live}"]`);
        if (old && old.innerHTML !== fresh.innerHTML) old.replaceWith(fresh);
      }
    } catch (error) {
      bar.setAttribute('data-lost', error.message);
    }
  }
  bar.addEventListener('change', (event) => {
    if (event.target.id !== 'st-study') return;
    const to = new URL(location.href);
    to.search = '';
    to.searchParams.set('study', event.target.value);
    location.assign(to);
  });
  bar.addEventListener('click', (event) => {
    if (!event.target.closest('[data-theme-switch]')) return;
    keep('studio-theme', isDark() ? 'light' : 'dark');
    const to = new URL(location.href);
    if (to.searchParams.has('__theme')) {
      to.searchParams.delete('__theme');
      history.replaceState(history.state, '', to);
    }
    paint();
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') drawer(false);
  });
  opener.addEventListener('click', () => drawer(!bar.hasAttribute('data-open')));

  // --- questions and toasts
  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }
  function ask({ title, text = '', type = '', yes = 'Yes' }) {
    const typed = element('input', { type: 'text', autocomplete: 'off' });
    const go = element('button', { type: 'submit', value: 'yes', textContent: yes, disabled: Boolean(type) });
    go.className = 'st-button';
    go.dataset.kind = type ? 'danger' : 'primary';
    const back = element('button', { type: 'button', textContent: 'Back' }); // Enter is for the other
    back.className = 'st-button';
    const words = (text) => text.trim().split(/\s+/).join(' '); // of several spaces a page shows one
    typed.addEventListener('input', () => { go.disabled = words(typed.value) !== words(type); });
    const form = element('form', { method: 'dialog' }, element('h2', { textContent: title, id: 'st-asked' }));
    if (text) form.append(element('p', { textContent: text }));
    if (type) form.append(element('label', {}, `Type ${type} to go on`, typed));
    form.append(element('div', { className: 'st-answers' }, back, go));
    const dialog = element('dialog', { className: 'st-dialog' }, form);
    dialog.setAttribute('aria-labelledby', 'st-asked');
    document.body.append(dialog);
    return new Promise((resolve) => {
      dialog.addEventListener('close', () => {
        resolve(dialog.returnValue === 'yes');
        dialog.remove();
      });
      back.addEventListener('click', () => dialog.close('no'));
      dialog.showModal();
      (type ? typed : back).focus();
    });
  }
  const toasts = element('div', { id: 'studio-toasts' });
  toasts.setAttribute('role', 'status');
  function tell(text) {
    for (const one of toasts.children) if (one.textContent === text) return;
    const toast = element('p', { className: 'st-toast', textContent: text });
    toasts.append(toast);
    setTimeout(() => toast.remove(), 6000);
  }
  // What is to be said on the page that one is led to.
  function tellNext(text) {
    try { sessionStorage.setItem('studio-toast', text); } catch { /* then it is not said */ }
  }

  // Gradio calls all its pages the same, so that tabs and bookmarks could not be told apart.
  function entitle() {
    const head = document.querySelector('h1');
    if (head) head.id ||= 'studio-head';
    const name = drawn && head?.firstChild?.textContent.trim();
    if (!name) return;
    document.getElementById('studio-late')?.remove();
    document.title = `${name} · SemSim Studio`;
    try { sessionStorage.removeItem(AGAIN); } catch { /* nothing was kept */ }
  }

  // --- boxes that scroll say how much they hold
  function measure() {
    for (const box of document.querySelectorAll('.st-scroll, .ov-targets')) {
      const rows = box.scrollHeight > box.clientHeight + 4 ? [...box.querySelectorAll('tbody tr, li')] : [];
      const end = box.getBoundingClientRect().bottom + 1;
      const seen = rows.filter((row) => row.getBoundingClientRect().bottom <= end).length;
      if (seen && seen < rows.length) box.dataset.more = `${seen} of ${rows.length}: scroll for more`;
      else delete box.dataset.more;
    }
  }
  for (const type of ['scroll', 'toggle', 'resize']) addEventListener(type, () => requestAnimationFrame(measure), true);

  // --- words that are explained: every element with data-term
  let meanings = null;
  async function explain() {
    const open = document.querySelectorAll('[data-term]:not([data-explained])');
    if (open.length === 0) return;
    for (const one of open) one.dataset.explained = '';
    try {
      meanings ??= fetch(`${home}glossary`).then((answer) => answer.json());
      const known = await meanings;
      for (const one of open) {
        const word = one.dataset.term || one.textContent.trim();
        if (!known[word]) continue;
        const more = element('button', { type: 'button', className: 'st-more', textContent: 'i' });
        more.setAttribute('aria-label', `What ${word} means`);
        more.addEventListener('click', (event) => {
          event.preventDefault();
          event.stopPropagation();
          say(more, known[word]);
        });
        one.append(more);
      }
    } catch {
      meanings = null;
      for (const one of open) delete one.dataset.explained; // asked for again with the next change
    }
  }
  const bubble = element('div', { className: 'st-bubble', popover: 'auto' });
  bubble.setAttribute('role', 'note');
  function say(beside, text) {
    bubble.textContent = text;
    (beside.closest('main, aside, dialog') ?? document.body).append(bubble);
    bubble.showPopover();
    const at = beside.getBoundingClientRect();
    const width = bubble.offsetWidth;
    const below = at.bottom + 6 + bubble.offsetHeight < innerHeight;
    bubble.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    bubble.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - bubble.offsetHeight - 6)}px`;
  }

  window.studio = { ask, tell, tellNext };

  function begin() {
    paint();
    document.body.prepend(skip, opener, bar);
    document.body.append(toasts);
    draw();
    setInterval(() => { if (!document.hidden) draw(); }, EVERY);
    // Gradio sets the class of the body by the system alone, and draws words late.
    new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ['class'] });
    let waiting = 0;
    new MutationObserver(() => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => {
        entitle();
        explain();
        measure();
      });
    }).observe(document.body, { childList: true, subtree: true });
    entitle();
    explain();
    let said = null;
    try {
      said = sessionStorage.getItem('studio-toast');
      sessionStorage.removeItem('studio-toast');
    } catch { /* nothing was kept */ }
    if (said) tell(said);
  }
  root.classList.add('st-framed');
  if (document.body) begin();
  else addEventListener('DOMContentLoaded', begin);
})();
