/**
 * The order of two texts by code points, which is that of their UTF-8 bytes and so the database's. (`<` compares UTF-16
 * units and puts what takes two of them before U+E000.)
 */
export function compareText(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return x < SURROGATES || y < SURROGATES ? x - y : rank(x) - rank(y);
  }
  return a.length - b.length;
}

const SURROGATES = 0xd800;
const AFTER_SURROGATES = 0xe000;

function rank(unit: number): number {
  return unit < AFTER_SURROGATES ? unit + 0x2800 : unit;
}
