/**
 * SHA-256 and SHA-512 (FIPS 180-4) for engines that have no synchronous ones: a browser's WebCrypto is asynchronous,
 * and @noble/ed25519 leaves SHA-512 to its user.
 */

/** SHA-256 of `data`, 32 bytes. */
export function sha256(data: Uint8Array): Uint8Array {
  const h = Uint32Array.from(SHA256_START);
  const w = new Uint32Array(64);
  const block = new DataView(padded(data, 64).buffer);
  for (let at = 0; at < block.byteLength; at += 64) {
    for (let t = 0; t < 16; t++) w[t] = block.getUint32(at + 4 * t);
    for (let t = 16; t < 64; t++) {
      const a = word(w, t - 15);
      const b = word(w, t - 2);
      const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      w[t] = word(w, t - 16) + s0 + word(w, t - 7) + s1;
    }
    compress256(h, w);
  }
  const out = new DataView(new ArrayBuffer(32));
  for (const [i, value] of h.entries()) out.setUint32(4 * i, value);
  return new Uint8Array(out.buffer);
}

function compress256(state: Uint32Array, w: Uint32Array): void {
  let [a, b, c, d, e, f, g, h] = state as unknown as Eight<number>;
  for (let t = 0; t < 64; t++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + word(SHA256_ROUNDS, t) + word(w, t)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = word(state, i) + value;
}

/** SHA-512 of `data`, 64 bytes. */
export function sha512(data: Uint8Array): Uint8Array {
  const h = BigUint64Array.from(SHA512_START);
  const w = new BigUint64Array(80);
  const block = new DataView(padded(data, 128).buffer);
  for (let at = 0; at < block.byteLength; at += 128) {
    for (let t = 0; t < 16; t++) w[t] = block.getBigUint64(at + 8 * t);
    for (let t = 16; t < 80; t++) {
      const a = long(w, t - 15);
      const b = long(w, t - 2);
      const s0 = rotate64(a, 1n) ^ rotate64(a, 8n) ^ (a >> 7n);
      const s1 = rotate64(b, 19n) ^ rotate64(b, 61n) ^ (b >> 6n);
      w[t] = long(w, t - 16) + s0 + long(w, t - 7) + s1; // The array keeps 64 bits.
    }
    compress512(h, w);
  }
  const out = new DataView(new ArrayBuffer(64));
  for (const [i, value] of h.entries()) out.setBigUint64(8 * i, value);
  return new Uint8Array(out.buffer);
}

function compress512(state: BigUint64Array, w: BigUint64Array): void {
  let [a, b, c, d, e, f, g, h] = state as unknown as Eight<bigint>;
  for (let t = 0; t < 80; t++) {
    const s1 = rotate64(e, 14n) ^ rotate64(e, 18n) ^ rotate64(e, 41n);
    const t1 = h + s1 + ((e & f) ^ (~e & g)) + long(SHA512_ROUNDS, t) + long(w, t);
    const s0 = rotate64(a, 28n) ^ rotate64(a, 34n) ^ rotate64(a, 39n);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) & MASK64, c, b, a, (t1 + t2) & MASK64];
  }
  for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = long(state, i) + value;
}

type Eight<T> = [T, T, T, T, T, T, T, T];

const MASK64 = (1n << 64n) - 1n;

/** `data`, a 1 bit, zeros, and the length in bits at the end of a whole number of blocks. */
function padded(data: Uint8Array, blockBytes: number): Uint8Array<ArrayBuffer> {
  const lengthBytes = blockBytes / 8;
  const blocks = Math.ceil((data.length + 1 + lengthBytes) / blockBytes);
  const out = new Uint8Array(blocks * blockBytes);
  out.set(data);
  out[data.length] = 0x80;
  new DataView(out.buffer).setBigUint64(out.length - 8, BigInt(data.length) * 8n);
  return out;
}

function word(words: Uint32Array, i: number): number {
  return words[i] as number;
}

function long(words: BigUint64Array, i: number): bigint {
  return words[i] as bigint;
}

function rotate(x: number, by: number): number {
  return (x >>> by) | (x << (32 - by));
}

function rotate64(x: bigint, by: bigint): bigint {
  return ((x >> by) | (x << (64n - by))) & MASK64;
}

/** The first `count` primes; both functions' constants are bits of their roots (FIPS 180-4, 4.2 and 5.3). */
function primes(count: number): bigint[] {
  const found: bigint[] = [];
  for (let n = 2n; found.length < count; n++) if (found.every((p) => n % p !== 0n)) found.push(n);
  return found;
}

/** The first 64 bits of the fractional part of the square (2) or cube (3) root of `n`. */
function rootBits(n: bigint, degree: 2n | 3n): bigint {
  const target = n << (64n * degree);
  let low = 0n;
  let high = 1n << 72n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** degree <= target) low = middle;
    else high = middle;
  }
  return low & MASK64;
}

const SHA512_START = BigUint64Array.from(primes(8), (p) => rootBits(p, 2n));
const SHA512_ROUNDS = BigUint64Array.from(primes(80), (p) => rootBits(p, 3n));
const SHA256_START = Uint32Array.from(SHA512_START, (bits) => Number(bits >> 32n));
const SHA256_ROUNDS = Uint32Array.from(SHA512_ROUNDS.slice(0, 64), (bits) => Number(bits >> 32n));
