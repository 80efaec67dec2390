// Where the studio begins: it may lie below a path, and this script knows where in it it lies itself.

const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

export const rooted = (address) => ROOT + address;
