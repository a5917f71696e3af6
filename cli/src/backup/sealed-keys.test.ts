import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  identityOf,
  type KeyContent,
  openKeys,
  passphraseOf,
  recipientOf,
  SCRYPT,
  SealedKeysError,
  type Sealer,
  sealKeys,
} from "./sealed-keys.ts";

const keys: readonly KeyContent[] = [
  { name: "master.key", content: Buffer.from(`${"m".repeat(43)}\n`) },
  { name: "root.key", content: Buffer.from(`${"r".repeat(43)}\n`) },
];
const passphrase = "correct horse battery";
const pair = generateKeyPairSync("x25519");
const recipient = recipientOf(pair.publicKey.export({ type: "spki", format: "pem" }).toString());
const identity = identityOf(pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString());
const shown = (opened: readonly KeyContent[]) =>
  opened.map(({ name, content }) => [name, Buffer.from(content).toString()]);

const byPassphrase = sealKeys(keys, { passphrase });
const forRecipient = sealKeys(keys, { recipient });

test("opened keys equal the sealed ones", () => {
  expect(shown(openKeys(byPassphrase, { passphrase }))).toEqual(shown(keys));
  expect(shown(openKeys(forRecipient, { identity }))).toEqual(shown(keys));
});

test.each<[string, string, Sealer]>([
  ["a passphrase", byPassphrase, { passphrase }],
  ["a recipient", forRecipient, { recipient }],
])("keys that %s seals differ each time, and reveal nothing", (_, first, sealer) => {
  const sealed = (text: string) => JSON.parse(text).sealed;
  expect(sealed(first)).not.toBe(sealed(sealKeys(keys, sealer)));
  for (const { content } of keys)
    for (const encoding of ["utf8", "base64url"] as const)
      expect(first).not.toContain(Buffer.from(content).toString(encoding).slice(0, 40));
});

test("the head states the parameters", () => {
  expect(JSON.parse(JSON.parse(byPassphrase).head)).toMatchObject({
    ...{ format: "depute-sealed-keys-v1", kdf: "scrypt", N: 131_072, r: 8, p: 1 },
  });
  expect(JSON.parse(JSON.parse(forRecipient).head)).toMatchObject({ kdf: "x25519-hkdf-sha256" });
});

/** Returns a sealed text with changed members of its head. */
const withHead = (text: string, change: Record<string, unknown>) => {
  const { head, sealed } = JSON.parse(text);
  return JSON.stringify({ head: JSON.stringify({ ...JSON.parse(head), ...change }), sealed });
};
/** Returns a sealed text in which one bit of the sealed content is flipped. */
const flipped = (text: string, index: number) => {
  const { head, sealed } = JSON.parse(text);
  const bytes = Buffer.from(sealed, "base64url");
  const at = index < 0 ? bytes.length + index : index;
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  return JSON.stringify({ head, sealed: bytes.toString("base64url") });
};
const otherIdentity = () => generateKeyPairSync("x25519").privateKey;
const errorOf = (open: () => unknown): Error | undefined => {
  try {
    open();
    return undefined;
  } catch (error) {
    return error as Error;
  }
};
const zero = Buffer.alloc(32).toString("base64url");

describe("sealed keys stay closed", () => {
  test.each<[string, () => unknown, string]>([
    [
      "with another passphrase",
      () => openKeys(byPassphrase, { passphrase: `${passphrase}.` }),
      "passphrase does not open",
    ],
    [
      "with another identity",
      () => openKeys(forRecipient, { identity: otherIdentity() }),
      "identity does not open",
    ],
    [
      "with an identity instead of the passphrase",
      () => openKeys(byPassphrase, { identity }),
      "the keys are sealed with a passphrase",
    ],
    [
      "with a passphrase instead of the identity",
      () => openKeys(forRecipient, { passphrase }),
      "for a recipient",
    ],
    [
      "after a change of the content",
      () => openKeys(flipped(forRecipient, 0), { identity }),
      "or it was changed",
    ],
    [
      "after a change of the tag",
      () => openKeys(flipped(forRecipient, -1), { identity }),
      "or it was changed",
    ],
    [
      "after an added member of the head",
      () => openKeys(withHead(forRecipient, { note: 1 }), { identity }),
      "or it was changed",
    ],
    [
      "with a cheaper derivation",
      () => openKeys(withHead(byPassphrase, { N: 1024 }), { passphrase }),
      "parameters of scrypt",
    ],
    [
      "with a derivation beyond the memory limit",
      () => openKeys(withHead(byPassphrase, { N: 2 ** 30 }), { passphrase }),
      "parameters of scrypt",
    ],
    [
      "with a short salt",
      () => openKeys(withHead(byPassphrase, { salt: "AA" }), { passphrase }),
      "its head does not have",
    ],
    [
      "with a long nonce",
      () => openKeys(withHead(byPassphrase, { nonce: zero }), { passphrase }),
      "its head does not have",
    ],
    [
      "with a key of low order",
      () => openKeys(withHead(forRecipient, { ephemeral: zero }), { identity }),
      "no usable key",
    ],
    [
      "in another form",
      () => openKeys(withHead(byPassphrase, { format: "v2" }), { passphrase }),
      "not a complete file",
    ],
    ["truncated", () => openKeys(byPassphrase.slice(0, -20), { passphrase }), "not a complete file"],
    ["as an empty file", () => openKeys("", { passphrase }), "not a complete file"],
    ["as another document", () => openKeys("[]", { passphrase }), "not a complete file"],
  ])("%s", (_, open, reason) => {
    const error = errorOf(open);
    expect(error).toBeInstanceOf(SealedKeysError);
    expect(error?.message).toContain(reason);
  });
});

test.each<[string, string, string]>([
  ["a line", "correct horse battery\n", passphrase],
  ["a line of Windows", "correct horse battery\r\n", passphrase],
  ["more lines", "correct horse battery\nother", passphrase],
  ["decomposed letters", "cafe\u0301 cafe\u0301 cafe\u0301", "caf\u00e9 caf\u00e9 caf\u00e9"],
])("a passphrase is read from %s", (_, text, expected) => expect(passphraseOf(text)).toBe(expected));

test.each<[string, () => unknown, string]>([
  [
    "a short passphrase",
    () => passphraseOf("short\n"),
    "the passphrase has 5 characters; it needs 12 to 1024",
  ],
  ["an empty file", () => passphraseOf(""), "has 0 characters"],
  ["a private key as recipient", () => recipientOf("-----BEGIN PRIVATE KEY-----"), "X25519 public key"],
  ["a public key as identity", () => identityOf(pem(pair.publicKey)), "X25519 private key"],
  [
    "a signing key as recipient",
    () => recipientOf(pem(generateKeyPairSync("ed25519").publicKey)),
    "X25519 public key",
  ],
])("%s is refused", (_, read, reason) => {
  expect(read).toThrow(SealedKeysError);
  expect(read).toThrow(reason);
});

function pem(key: KeyObject): string {
  return key.export({ type: "spki", format: "pem" }).toString();
}

test("one guess of a passphrase needs 128 MiB", () => {
  expect(128 * SCRYPT.N * SCRYPT.r).toBe(128 * 1024 * 1024);
});
