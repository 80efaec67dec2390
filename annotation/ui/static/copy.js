// A button with data-copy="id" copies the text of that element.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const told = button.parentElement.querySelector("[role='status']");
    told.textContent = (await copied(source)) ? "Copied." : "Select the code and copy it by hand.";
  });
}

// Whether it worked: a browser allows it only on https or this very machine.
async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return document.execCommand?.("copy") ?? false;
  }
}
