// A new study in four steps: the form is the state, the server says what it would mean.

import { sent } from './asking.js';
import { goToWrong, markWrong, unmarkAll, valueOf } from './fields.js';
import { namedTexts } from './named.js';
import { rooted } from './root.js';
import { recall, remember } from './tabs.js';

const STEPS = ['pictures', 'question', 'people', 'review'];
const WAIT = 250; // milliseconds after the last change
const FIRST = 'Put right first what is marked above.';
const KEPT = 'semsim:new'; // what is in the making here, when one comes back
const before = JSON.parse(recall(KEPT) || 'null'); // what was, when the page was opened
const $ = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const { start, scores, questions, texts } = JSON.parse($('#new-data').textContent);
const form = $('#new-study');
const byName = all('[data-named]').map((area) => namedTexts(area, area.dataset.setting === 'texts' ? texts : null));
let at = 'pictures';
let asked = 0;
let named = false; // whether somebody has given a name
let rest = {}; // settings of a file that have no field here

// ------------------------------------------------------------------ the draft

function task() {
  return $('input[name="task"]:checked').value;
}

function draft() {
  const settings = { task: task() };
  for (const field of all('[data-setting]')) {
    const value = valueOf(field);
    const hidden = field.closest('[data-only]')?.hidden;
    if (!hidden && !(value === '' && field.type !== 'text' && field.type !== 'textarea')) {
      settings[field.dataset.setting] = value;
    }
  }
  const words = $('#question-words').value.trim();
  if (words) settings.texts = { ...textsOf(settings.texts), [`${task()}.question`]: words };
  const number = (id) => ($(id).value === '' ? null : Number($(id).value));
  const sets = all('input[name="set"]:checked').map((one) => one.value);
  return { ...rest, ...settings, sets, people: number('#people'), wage: number('#wage'), gold: $('#gold').value };
}

function keep() {
  const { password, ...told } = draft(); // a password is kept nowhere
  if (!$('#unfinished').hidden && !told.sets.length) return; // nothing, beside what is offered
  remember(KEPT, JSON.stringify({ told, named, search: location.search }));
}

// Fills in what was in the making.
function goOn() {
  $('#unfinished').hidden = true;
  fillIn(before.told);
  named = before.named;
}

// Goes on by itself where the page was loaded again or come back to, else offers it. Answers whether.
function wentOn() {
  const [{ type }] = performance.getEntriesByType('navigation');
  const here = ['reload', 'back_forward'].includes(type) && before?.search === location.search;
  if (here) goOn();
  else $('#unfinished').hidden = !before?.told.sets.length;
  return here;
}

// Texts of the study by name, from the field that has them as JSON; what is none is left to be told.
function textsOf(text) {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return {};
  }
}

function fillIn(values) {
  const { sets = [], people, wage, gold, task: kind, ...settings } = values;
  form.reset();
  for (const box of all('input[name="set"]')) box.checked = sets.includes(box.value);
  if (people) $('#people').value = people;
  if (wage) $('#wage').value = wage;
  $('#gold').value = gold ?? '';
  if (kind) $(`input[name="task"][value="${CSS.escape(kind)}"]`).checked = true;
  byTask();
  rest = {};
  for (const [name, value] of Object.entries(settings)) {
    const field = $(`[data-setting="${CSS.escape(name)}"]`);
    if (!field) rest[name] = value;
    else if (field.type === 'checkbox') field.checked = [true, 'yes'].includes(value);
    else field.value = typeof value === 'object' ? JSON.stringify(value) : value;
  }
  named = Boolean(settings.name);
  const field = $('[data-setting="texts"]');
  const { [`${task()}.question`]: words = '', ...others } = textsOf(field.value);
  $('#question-words').value = words;
  if (words) field.value = Object.keys(others).length ? JSON.stringify(others) : '';
  for (const one of byName) one.draw();
}

// Settings that mean something in one task only, and its human scores.
function byTask() {
  $('#question-words').placeholder = questions[task()];
  for (const field of all('[data-only]')) field.hidden = field.dataset.only !== task();
  for (const option of $('#set-headline').options) {
    option.hidden = option.disabled = !scores[task()].includes(option.value);
  }
  if ($('#set-headline').selectedOptions[0]?.disabled) $('#set-headline').value = scores[task()][0];
}

// ------------------------------------------------------------------ what it would mean

function send(where, body) {
  return sent(rooted(`/studio/new/${where}`), body);
}

async function look() {
  const mine = ++asked;
  suggestName();
  keep();
  try {
    const told = await (await send('look', draft())).json();
    if (mine === asked) show(told);
  } catch (error) {
    if (mine === asked) showProblems({ [at]: [error.message] });
  }
}

function suggestName() {
  const sets = all('input[name="set"]:checked');
  if (named || !sets.length || document.activeElement?.id === 'set-name') return;
  const words = `${task().replace(/^./, (one) => one.toUpperCase())}: ${sets[0].closest('label').dataset.setOf}`;
  $('#set-name').value = `${words}, ${sets.length} ${sets.length === 1 ? 'set' : 'sets'}`;
}

function show(told) {
  showProblems(told.problems, told.fields);
  const wrong = Object.keys(told.problems).length > 0;
  for (const box of all('[data-said]')) {
    const lines = told.said[box.dataset.said] ?? [];
    if (lines.length) box.replaceChildren(...lines.map((line) => paragraph(line)));
    else if (box.dataset.said === 'question') box.replaceChildren();
    else if (wrong && box.dataset.said !== 'pictures') box.replaceChildren(paragraph(FIRST));
  }
  $('[data-said="people"]').dataset.enough = told.enough ?? true;
  $('#in-short').textContent = (told.said.pictures ?? []).slice(0, 1).join('');
  if (told.unusual) showUnusual(told.unusual);
  else if (wrong) $('#unusual').replaceChildren(paragraph(FIRST));
  showPage(told.preview);
}

function paragraph(text) {
  const made = document.createElement('p');
  made.textContent = text;
  return made;
}

// fields: by problem, the setting that it is put right at.
function showProblems(problems, fields = {}) {
  markFields(problems, fields);
  for (const section of all('section[data-step]')) {
    const lines = problems[section.dataset.step] ?? [];
    const box = section.querySelector('.st-problem');
    box.hidden = !lines.length;
    box.replaceChildren(...lines.map(paragraph));
    const button = $(`[data-go="${section.dataset.step}"]`);
    button.toggleAttribute('data-wrong', lines.length > 0);
    button.querySelector('i').textContent = lines.length ? `, ${lines.length} to put right` : '';
  }
}

const fieldOf = (name) => $(`[data-setting="${CSS.escape(name)}"], #${CSS.escape(name)}`);

function markFields(problems, fields) {
  unmarkAll();
  for (const line of Object.values(problems).flat().filter((one) => fieldOf(fields[one] ?? '-'))) {
    markWrong(fieldOf(fields[line]), line);
  }
}

function showUnusual(rows) {
  if (!rows.length) return $('#unusual').replaceChildren(paragraph('Nothing: all settings are as usual.'));
  const list = document.createElement('ul');
  for (const [label, value, usual] of rows) {
    const item = document.createElement('li');
    item.textContent = `${label}: ${value} (usual: ${usual})`;
    list.append(item);
  }
  $('#unusual').replaceChildren(list);
}

let shownPage = '';
function showPage(preview) {
  const text = JSON.stringify(preview ?? null);
  $('.nw-screen').toggleAttribute('data-ready', Boolean(preview));
  if (text === shownPage || !preview) return;
  shownPage = text;
  window.studioPreview = preview;
  $('.nw-screen iframe').contentWindow.location.reload();
}

let waiting;
function soon() {
  keep(); // a reload may come before the look
  clearTimeout(waiting);
  waiting = setTimeout(look, WAIT);
}

// ------------------------------------------------------------------ steps

// chosen: by a button, so that the address has one more step and the head of the step the focus.
function go(step, chosen = true) {
  at = STEPS.includes(step) ? step : 'pictures';
  for (const section of all('section[data-step]')) section.hidden = section.dataset.step !== at;
  for (const button of all('[data-go]')) {
    if (button.dataset.go === at) button.setAttribute('aria-current', 'step');
    else button.removeAttribute('aria-current');
  }
  $('#back').hidden = at === STEPS[0];
  $('#next').textContent = at === 'review' ? 'Create study' : 'Next';
  if (location.hash.slice(1) !== at) history[chosen ? 'pushState' : 'replaceState'](null, '', `#${at}`);
  if (chosen) {
    $(`section[data-step="${at}"]`).focus({ preventScroll: true });
    window.scrollTo({ top: 0 });
  }
  scale();
}

async function next() {
  if (at === 'review') return create();
  if (at === 'pictures' && !draft().sets.length) {
    return showProblems({ pictures: ['Choose at least one set of pictures.'] });
  }
  if (!goToWrong($(`section[data-step="${at}"]`))) go(STEPS[STEPS.indexOf(at) + 1]);
}

async function create() {
  const button = $('#next');
  if (button.disabled) return;
  button.disabled = true;
  button.textContent = 'Creating …';
  clearTimeout(waiting); // what creating says is not hidden by a look that was asked for before
  asked += 1;
  try {
    const told = await (await send('create', draft())).json();
    if (!told.problems) {
      remember(KEPT, '');
      window.studio.tellNext(`Created: ${told.name}`);
      return location.assign(rooted(`/studio/overview?study=${encodeURIComponent(told.study)}`));
    }
    showProblems(told.problems, told.fields);
    if (!told.problems[at]) go(STEPS.find((step) => told.problems[step]));
    goToWrong($(`section[data-step="${at}"]`));
  } catch (error) {
    showProblems({ review: [error.message] });
  }
  button.disabled = false;
  button.textContent = at === 'review' ? 'Create study' : 'Next';
}

// The annotators' page is as large as a laptop's screen, however wide the column is.
function scale() {
  const screen = $('.nw-screen');
  if (screen.clientWidth) screen.style.setProperty('--scale', screen.clientWidth / 1366);
}

// ------------------------------------------------------------------ files

async function saveFile() {
  try {
    const text = await (await send('file', draft())).blob();
    const link = document.createElement('a');
    link.href = URL.createObjectURL(text);
    link.download = `${$('#set-name').value.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase() || 'study'}.yaml`;
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    showProblems({ review: [error.message] });
  }
}

async function startFrom(file) {
  if (!file) return;
  try {
    fillIn(await (await send('read', { text: await file.text() })).json());
    window.studio.tell(`Filled in from ${file.name}`);
    look();
  } catch (error) {
    showProblems({ [at]: error.message.split('\n') });
  }
}

// ------------------------------------------------------------------ begin

function find() {
  const words = $('#find').value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const card of all('.nw-set')) card.hidden = !words.every((word) => card.dataset.words.includes(word));
}

form.addEventListener('submit', (event) => event.preventDefault());
form.addEventListener('input', (event) => {
  if (event.target.id === 'find') return find();
  if (event.target.id === 'set-name') named = event.target.value !== '';
  if (event.target.name === 'task') byTask();
  soon();
});
$('#all-shown')?.addEventListener('click', () => {
  for (const card of all('.nw-set:not([hidden]) input:not(:disabled)')) card.checked = true;
  look();
});
for (const button of all('[data-go]')) button.addEventListener('click', () => go(button.dataset.go));
$('#back').addEventListener('click', () => go(STEPS[STEPS.indexOf(at) - 1]));
$('#next').addEventListener('click', next);
$('#save-file').addEventListener('click', saveFile);
$('#from-file').addEventListener('change', ({ target }) => {
  const [file] = target.files;
  target.value = ''; // the same one, mended, is a choice again
  startFrom(file);
});
addEventListener('popstate', () => go(location.hash.slice(1), false));
$('#go-on').addEventListener('click', () => {
  goOn();
  look();
});
new ResizeObserver(scale).observe($('.nw-screen'));
byTask();
if (!wentOn() && Object.keys(start).length) fillIn(start);
go(location.hash.slice(1), false);
look();
