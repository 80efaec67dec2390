// How large pictures are drawn: whole multiples of the screen's own pixels, as many as fit.

const GAP = 16; // CSS pixels between two pictures, and around them
const SMALLER = 8; // so many times smaller is the small picture beside a large one, at most

// room, natural: {width, height} of the place and of a picture; count: pictures in it; small:
// whether each has a small one beside it; most: screen pixels a picture's pixel may take, 0 is any;
// dpr: device pixels a CSS pixel. Returns {scale, small, stacked, below}: sizes as multiples of the
// natural one, whether pictures lie below each other, and whether small ones lie below large ones.
export function fit({ room, natural, count, small, most, dpr }) {
  const best = { scale: 0 };
  for (const stacked of count > 1 ? [false, true] : [false]) {
    for (const below of small ? [false, true] : [false]) {
      const scale = largest((one) => fits(one, { room, natural, count, small, stacked, below }), most, dpr);
      if (scale > best.scale) Object.assign(best, { scale, stacked, below, small: small ? smallOf(scale) : 0 });
    }
  }
  return best;
}

// A whole number of device pixels a picture's pixel, or one for a whole number of its pixels.
function largest(fitsAt, most, dpr) {
  const limit = most || 4096;
  if (!fitsAt(1 / dpr)) {
    for (let parts = 2; ; parts++) if (parts > 64 || fitsAt(1 / (dpr * parts))) return 1 / (dpr * parts);
  }
  let steps = 1;
  while ((steps + 1) / dpr <= limit && fitsAt((steps + 1) / dpr)) steps++;
  return steps / dpr;
}

function smallOf(scale) {
  return scale < 1 ? scale / 2 : Math.max(1, Math.round(scale / SMALLER));
}

function fits(scale, { room, natural, count, small, stacked, below }) {
  const [width, height] = [natural.width * scale, natural.height * scale];
  const beside = small ? GAP + natural.width * smallOf(scale) : 0;
  const under = small ? GAP + natural.height * smallOf(scale) : 0;
  const one = below ? [width, height + under] : [width + beside, height];
  const whole = [one[0] * (stacked ? 1 : count), one[1] * (stacked ? count : 1)];
  const gaps = GAP * (count + 1);
  return whole[0] + (stacked ? 2 * GAP : gaps) <= room.width && whole[1] + (stacked ? gaps : 2 * GAP) <= room.height;
}
