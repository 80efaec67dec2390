// Which physical key gives which answer. Codes, not letters: the block of keys has the same
// shape on every keyboard, whatever is printed on it. Buttons say what is printed; where a browser
// cannot know that, or is wrong, the key counts on which stands what the button says.

export const COLUMNS = 5;

// Four rows of five; the buttons on the screen lie the same way.
export const CANDIDATE_CODES = [
  "Digit1", "Digit2", "Digit3", "Digit4", "Digit5",
  "KeyQ", "KeyW", "KeyE", "KeyR", "KeyT",
  "KeyA", "KeyS", "KeyD", "KeyF", "KeyG",
  "KeyZ", "KeyX", "KeyC", "KeyV", "KeyB",
];

// Held, it shows the picture in another view.
export const VIEW_CODE = "KeyH";

// What the key is called on a US keyboard, for browsers that do not tell the real layout.
export function usualLetter(code) {
  return code.replace(/^(Digit|Key)/, "");
}

// A function from code to the letter printed on this person's key.
export async function keyLetters() {
  if (!navigator.keyboard?.getLayoutMap) return usualLetter;
  try {
    const layout = await navigator.keyboard.getLayoutMap();
    return (code) => layout.get(code)?.toUpperCase() ?? usualLetter(code);
  } catch {
    return usualLetter; // refused in a frame; the answer to a key does not depend on it
  }
}

const PRINTED = [..."1234567890"].map((one) => `Digit${one}`)
  .concat([..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((one) => `Key${one}`));

// The code of the key that a press is meant as, by what keys are called on the screen.
export function codeOf({ code, key }, letter) {
  const said = key.toUpperCase();
  if (code.startsWith("Numpad") || letter(code) === said) return code;
  return PRINTED.find((one) => letter(one) === said) ?? code;
}

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const PRESSABLE = "button, a[href], summary, [role='button']";

// Whether a key press can be meant as an answer.
export function isShortcut(event) {
  if (event.repeat || event.isComposing) return false;
  if (event.altKey || event.getModifierState("AltGraph")) return false;
  // Focus may linger in a dialog that has just been closed.
  const hidden = event.target instanceof Element && event.target.closest("dialog:not([open])");
  const target = event.target instanceof Element && !hidden ? event.target : null;
  if (target?.closest(TYPING)) return false;
  // Somebody who tabbed to a button presses it with Space or Enter.
  const pressing = event.code === "Space" || event.code === "Enter";
  return !(pressing && target?.closest(PRESSABLE)?.matches(":focus-visible"));
}
