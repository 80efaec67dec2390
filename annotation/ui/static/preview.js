// A preview of the labelling page. All that it would ask the server about votes is answered here:
// what somebody answers never leaves the browser, so that it can never become a vote.
(() => {
  const root = new URL('../..', document.currentScript.src).pathname.replace(/\/$/, '');
  const study = new URLSearchParams(location.search).get('study');
  const real = window.fetch.bind(window);
  const given = study
    ? real(`${root}/studio/preview/items?study=${encodeURIComponent(study)}`).then((answer) => answer.json())
    : Promise.resolve(window.parent.studioPreview ?? { study: null, items: [] });
  const done = new Map(); // vote → item
  // Nobody goes on where an earlier preview stopped: its answers are nowhere.
  const key = `preview-${Date.now()}-${Math.random()}`;

  const dark = (() => {
    try {
      const chosen = localStorage.getItem('studio-theme');
      return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    } catch {
      return false;
    }
  })();
  document.documentElement.classList.toggle('dark', dark);

  const reply = (content, status = 200) => new Response(JSON.stringify(content), {
    status, headers: { 'Content-Type': 'application/json' },
  });
  async function answer(path, body) {
    const { study: about, items } = await given;
    if (about === null) return new Promise(() => {}); // until there is something, the page waits
    const answered = new Set(done.values());
    const left = items.filter((one) => !answered.has(one.item));
    const progress = { ...about.progress, done: done.size, left: left.length, total: items.length };
    if (path === '/api/study') return reply({ ...about, key, progress });
    if (path === '/api/next') {
      const state = left.length ? 'ready' : 'finished';
      return reply({ items: left, state, version: about.version, progress });
    }
    if (path === '/api/vote') {
      done.set(body.id, body.item);
      return reply({ id: body.id, status: 'counted' });
    }
    if (path === '/api/undo') {
      const item = items.find((one) => one.item === done.get(body.id));
      done.delete(body.id);
      return reply({ id: body.id, item });
    }
    return reply({ ok: true });
  }

  window.fetch = (what, options = {}) => {
    const { pathname } = new URL(what instanceof Request ? what.url : what, location.href);
    const path = pathname.slice(root.length);
    if (path.startsWith('/studio/')) return real(what, options);
    if (!path.startsWith('/api/')) return Promise.reject(new TypeError('a preview asks nobody'));
    const body = options.body ? JSON.parse(options.body) : {};
    return answer(path, body);
  };
  navigator.sendBeacon = () => true;
})();
