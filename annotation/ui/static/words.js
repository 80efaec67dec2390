// What people read: texts of the study by name, {…} in them filled in.

export function wording(texts) {
  return (name, values = {}) =>
    (texts[name] ?? name).replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

// What the server says went wrong, in the words of the study where there are some.
export function errorWords(say, { text, values, error }) {
  return text ? say(text, values) : error;
}
