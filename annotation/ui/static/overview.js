// The overview of a study: what can be done to it, each with a question where it can't be undone.

import { sent } from './asking.js';
import { copied } from './copying.js';
import { goToWrong, markWrong, unmarkAll, valueOf } from './fields.js';
import { namedTexts } from './named.js';
import { follow } from './part.js';
import { rooted } from './root.js';

const here = document.querySelector('#overview');
const $ = (selector) => document.querySelector(selector);

if (here) begin(here.dataset.study);

function begin(study) {
  const { ask, tell, tellNext } = window.studio;

  async function send(what, body) {
    return (await sent(rooted(`/studio/overview/${study}/${what}`), body)).json();
  }

  // What goes wrong stands at the top of the page, in words.
  async function attempt(work) {
    const box = $('#ov-problem');
    box.hidden = true;
    try {
      await work();
    } catch (error) {
      box.textContent = error.message;
      box.hidden = false;
      box.scrollIntoView({ block: 'nearest' });
    }
  }

  async function refresh() {
    document.activeElement?.blur();
    for (const menu of document.querySelectorAll('.ov-menu[open]')) menu.open = false;
    await follow({ study });
  }

  async function put(status) {
    const closing = {
      title: 'Close the study?',
      text: here.dataset.whose + 'Nobody gets pictures any more, and votes that still arrive do not count. It can be reopened; votes that came meanwhile stay uncounted.',
      yes: 'Close it',
    };
    if (status === 'closed' && !(await ask(closing))) return;
    await send('status', { status });
    tell({ running: 'The study runs.', paused: 'Paused: people keep their place.', closed: 'Closed.' }[status]);
    await refresh();
  }

  async function rename() {
    const dialog = $('#rename');
    dialog.querySelector('[type=button]').onclick = () => dialog.close('no'); // Enter renames
    dialog.returnValue = '';
    dialog.showModal();
    $('#new-name').select();
    await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
    if (dialog.returnValue !== 'yes') return;
    const { name } = await send('rename', { name: $('#new-name').value });
    tellNext(`Renamed to ${name}`);
    location.reload();
  }

  async function remove() {
    const name = here.dataset.name.trim();
    const sure = await ask({
      title: 'Delete the study?',
      text: here.dataset.whose + 'Its items, its people and every vote go, and cannot be brought back from here. '
        + 'A backup of the database is written first, where it is an SQLite file (of PostgreSQL, make one with pg_dump). '
        + 'Pictures stay in the folder of images.',
      type: name,
      yes: 'Delete it',
    });
    if (!sure) return;
    const { backup } = await send('delete', { name });
    tellNext(backup ? `Deleted. The backup is ${backup}` : 'Deleted.');
    location.assign(rooted('/studio/'));
  }

  async function cancel() {
    await send('cancel', {});
    tell('Cancelled: it ends after the answers under way.');
    await refresh();
  }

  const acts = { rename, delete: remove, cancel };
  document.addEventListener('click', (event) => {
    const act = event.target.closest('[data-act]')?.dataset.act;
    if (act) attempt(() => (acts[act] ? acts[act]() : put(act)));
    const button = event.target.closest('[data-copy]');
    if (button) copy($('#link'), button.dataset.done);
    for (const menu of document.querySelectorAll('.ov-menu[open]')) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener('keydown', (event) => {
    const menu = event.key === 'Escape' && document.querySelector('.ov-menu[open]');
    if (!menu) return;
    menu.open = false;
    menu.querySelector('summary').focus();
  });
  async function copy(link, done) {
    tell((await copied(link)) ? done : 'Select the link and copy it by hand.');
  }
  const usual = JSON.parse($('#amend').dataset.texts);
  $('#setting').addEventListener('change', () => {
    const drawn = $(`template[data-field="${CSS.escape($('#setting').value)}"]`);
    $('#given').replaceChildren(drawn?.content.cloneNode(true) ?? '');
    const area = $('#given [data-named]');
    if (area) namedTexts(area, area.dataset.setting === 'texts' ? usual : null);
  });
  $('#amend').addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(async () => {
      const { setting, why } = Object.fromEntries(new FormData($('#amend')));
      const field = $('#given [data-setting]');
      unmarkAll();
      const { version } = await send('amend', { setting, value: field ? valueOf(field) : '', why }).catch((error) => {
        if (error.status !== 422 || !field) throw error;
        markWrong(field, error.message);
        goToWrong($('#given'));
        return {};
      });
      if (!version) return;
      tellNext(`Saved as version ${version}.`);
      location.reload();
    });
  });
  document.addEventListener('submit', (event) => {
    if (event.target.id !== 'model') return;
    event.preventDefault();
    attempt(async () => {
      await send('model', Object.fromEntries(new FormData(event.target)));
      tell('The model answers.');
      await refresh();
    });
  });
}
