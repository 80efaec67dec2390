// A button with data-copy="id" copies the text of that element and says so in its own words.

import { copied } from "./copying.js";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const told = button.parentElement.querySelector("[role='status']");
    const { done, byHand } = button.dataset;
    told.textContent = (await copied(source)) ? done : byHand;
  });
}
