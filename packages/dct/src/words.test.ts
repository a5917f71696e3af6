import { describe, expect, test } from "vitest";
import { fromHex } from "./engine/encodings.ts";
import { portableEngine } from "./engine/portable.ts";
import { SIGNATURE_VECTORS, type SignatureVector } from "./engine/vectors.ts";
import { isId, isKnownCapability, isName, newId, splitRequirement } from "./names.ts";
import { generateKeypair, isAdmissible, keypairFromSeed, parsePrincipal, principalId } from "./principal.ts";
import { alice, engine, id } from "./testing/fixtures.ts";
import { formatTime, parseTime } from "./time.ts";

describe("C4 times have one grammar", () => {
  test.each([
    ["2026-02-17T12:00:00Z", Date.UTC(2026, 1, 17, 12)],
    ["2026-02-17T12:00:00.500Z", Date.UTC(2026, 1, 17, 12) + 500],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
  ])("%s", (text, ms) => {
    expect(parseTime(text)).toBe(ms);
  });

  test.each([
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-02-17T24:00:00Z",
    "2026-02-17T23:59:60Z",
    "2026-13-01T00:00:00Z",
    "2026-02-17T12:00:00+00:00",
    "2026-02-17T12:00:00",
    "2026-02-17 12:00:00Z",
    "2026-02-17t12:00:00z",
    "2026-02-17T12:00:00.5Z",
    "2026-02-17T12:00:00.500000Z",
    "+012026-02-17T12:00:00Z",
    "2026-02-17T12:00:00Z\n",
    "zzzz",
    "",
    1_771_329_600_000,
    null,
  ])("refuses %j", (text) => {
    expect(parseTime(text)).toBeUndefined();
  });

  test("their text does not sort by time, their instants do", () => {
    expect("2026-02-17T12:00:00.500Z" < "2026-02-17T12:00:00Z").toBe(true);
    expect(parseTime("2026-02-17T12:00:00.500Z")).toBeGreaterThan(
      parseTime("2026-02-17T12:00:00Z") as number,
    );
  });

  test("formatTime output is readable by parseTime, and the year 10000 is refused", () => {
    expect(parseTime(formatTime(1234567890123))).toBe(1234567890123);
    expect(() => formatTime(Date.UTC(10000, 0))).toThrow(RangeError);
    expect(() => formatTime(Number.NaN)).toThrow(RangeError);
  });
});

describe("ids", () => {
  test.each(["ct", "del", "att"] as const)("a new %s is valid", (kind) => {
    expect(isId(kind, newId(kind))).toBe(true);
    expect(newId(kind)).not.toBe(newId(kind));
  });

  test.each([
    "del_001",
    "del_00000000000G",
    "DEL_000000000001",
    "ct_000000000001",
    "del_0000000000011",
    "",
    7,
  ])("%j is not a delegation id", (value) => {
    expect(isId("del", value)).toBe(false);
  });

  test("relaxed accepts the published examples, and refuses white space and long text", () => {
    expect(isId("del", "del_001", "relaxed")).toBe(true);
    for (const value of ["", "a b", "a\n", "x".repeat(129), "_a", null])
      expect(isId("del", value, "relaxed")).toBe(false);
  });
});

describe("namespaces", () => {
  test.each([
    ["web", "search", true],
    ["docs", "delete", true],
    ["web", "delete", false],
    ["acme:crm", "lookup", true],
    ["acme:crm:eu", "lookup", true],
    ["acme", "lookup", false],
    ["acme:", "lookup", false],
    [":crm", "lookup", false],
    ["*", "search", false],
    ["web", "*", false],
    ["constructor", "search", false],
    ["__proto__", "search", false],
  ])("%s:%s known: %s", (namespace, action, known) => {
    expect(isKnownCapability(namespace, action)).toBe(known);
  });

  test("J8 names are compared as bytes of ASCII", () => {
    for (const name of ["w\u0435b", "Web", "web ", "\uff57eb", "w*b", "", "x".repeat(65)])
      expect(isName(name)).toBe(false);
  });

  test("requirements are split at the last colon", () => {
    expect(splitRequirement("acme:crm:lookup")).toEqual({ namespace: "acme:crm", action: "lookup" });
    expect(splitRequirement("web:search")).toEqual({ namespace: "web", action: "search" });
    for (const text of ["web", ":search", "web:", "web:*", 7]) expect(splitRequirement(text)).toBeUndefined();
  });
});

describe("principals", () => {
  test("a keypair's id is its public key, 43 characters", () => {
    const keypair = generateKeypair(engine, { name: "n", metadata: { team: "x" } });
    expect(parsePrincipal(keypair.principal.id)).toEqual(engine.publicKey(keypair.privateKey));
    expect(keypair.principal).toMatchObject({ name: "n", metadata: { team: "x" } });
    expect(generateKeypair(engine).principal.id).not.toBe(keypair.principal.id);
    expect(() => keypairFromSeed(engine, new Uint8Array(33))).toThrow(RangeError);
  });

  const last = id(alice).slice(-1);
  const spellings = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].filter(
    (c) => c !== last,
  );
  test.each<[string, unknown]>([
    ["K1 a byte too many", `${id(alice)}A`],
    ["K1 too short", id(alice).slice(0, -1)],
    ["K8 padding", `${id(alice)}=`],
    ["K8 white space", ` ${id(alice)}`],
    ["K3 small order", "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
    ["K3 zero", "A".repeat(43)],
    ["K3 y = p", "7f_______________________________________38"],
    ["not text", { toString: () => id(alice) }],
    ["a surrogate", "\ud800".repeat(43)],
  ])("%s is not a principal", (_, value) => {
    expect(parsePrincipal(value)).toBeUndefined();
    expect(isAdmissible(engine, value)).toBe(false);
  });

  test("K8 a key has one spelling", () => {
    const others = spellings.map((c) => id(alice).slice(0, -1) + c).map(parsePrincipal);
    const same = others.filter(
      (key) => key !== undefined && Buffer.from(key).equals(Buffer.from(engine.publicKey(alice.privateKey))),
    );
    expect(same).toEqual([]);
  });

  test.each([engine, portableEngine])("K4 a key of mixed order is not admitted by $name", (one) => {
    const mixed = SIGNATURE_VECTORS.find(({ name }) =>
      name.startsWith("key of mixed order"),
    ) as SignatureVector;
    const principal = principalId(fromHex(mixed.publicKey));
    expect(parsePrincipal(principal)).toBeDefined();
    expect(isAdmissible(one, principal)).toBe(false);
    expect(isAdmissible(one, id(alice))).toBe(true);
  });
});
