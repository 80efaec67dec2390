// Copying what an element says. A browser allows it only on https or this very machine.

// Whether it worked; else the text is selected, to be copied by hand.
export async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch {
    if (source.select) source.select();
    else getSelection().selectAllChildren(source);
    return document.execCommand?.("copy") ?? false;
  }
}
