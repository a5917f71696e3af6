import { expect, test } from "vitest";
import { sha256Hex } from "./sha256.ts";

test.each<[content: string, digest: string]>([
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  // The example of FIPS 180-4 for a message that fits into one block of the hash function.
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ["é", "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"],
])("of %j, as bytes and as text", (content, digest) => {
  expect(sha256Hex(content)).toBe(digest);
  expect(sha256Hex(new TextEncoder().encode(content))).toBe(digest);
});
