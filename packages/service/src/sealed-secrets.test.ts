import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { describe, expect, it } from "vitest";
import { SealedSecrets } from "./sealed-secrets.ts";

const secrets = new SealedSecrets(new Uint8Array(32).fill(7));
const secret = new Uint8Array(32).fill(1);
const keyContext = { id: "k", owner: "o" };
const sealed = secrets.seal(secret, keyContext);

describe("a sealed secret", () => {
  it("opens to its secret, and differs each time", () => {
    expect(secrets.open(sealed, keyContext)).toEqual(secret);
    expect(secrets.seal(secret, keyContext)).not.toBe(sealed);
    expect(sealed).not.toContain(encodeBase64Url(secret).slice(0, 20));
  });

  it.each([
    ["another owner's", { ...keyContext, owner: "p" }],
    ["another key's", { ...keyContext, id: "l" }],
    ["an empty context", {}],
  ])("does not open as %s", (_, context) => {
    expect(secrets.open(sealed, context)).toBeUndefined();
  });

  it("does not open with another master key or after any change", () => {
    expect(new SealedSecrets(new Uint8Array(32).fill(8)).open(sealed, keyContext)).toBeUndefined();
    const bytes = decodeBase64Url(sealed) ?? new Uint8Array();
    for (let i = 0; i < bytes.length; i++) {
      const changed = bytes.slice();
      changed[i] = (changed[i] ?? 0) ^ 1;
      expect(secrets.open(encodeBase64Url(changed), keyContext)).toBeUndefined();
    }
    for (const text of ["", "AAAA", sealed.slice(0, 40), "not base64url!"]) {
      expect(secrets.open(text, keyContext)).toBeUndefined();
    }
  });
});
