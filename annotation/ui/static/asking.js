// Asking the server from a page of the studio: what goes wrong is said in words.

const NOBODY = "The studio does not answer. Try again.";

// The answer. Throws an Error with what the server says is wrong and its status, or that nobody answers.
export async function asked(address, options) {
  const reply = await fetch(address, options).catch(() => null);
  if (reply?.ok) return reply;
  throw Object.assign(new Error((reply && told(await reply.text())) || NOBODY), { status: reply?.status });
}

export function sent(address, content) {
  const headers = { "Content-Type": "application/json" };
  return asked(address, { method: "POST", headers, body: JSON.stringify(content) });
}

// What went wrong, by the answer to a script or by a page that says so.
function told(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    const page = new DOMParser().parseFromString(text, "text/html");
    return page.querySelector("main [role=alert]")?.textContent;
  }
}
