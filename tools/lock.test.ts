import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Lock, missingPlatforms, withPlatforms } from "./lock.ts";

const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as Lock;
const versionOf = (name: string) => lock.packages[`node_modules/${name}`]?.version;

test("the lock has all of buf's platforms; if not: npm run fix-lock", () => {
  expect(missingPlatforms(lock)).toEqual([]);
});

test("the lock names no registry", () => {
  const addresses = Object.values(lock.packages).map(({ resolved }) => resolved);
  expect(addresses.filter((address) => address?.includes(":"))).toEqual([]);
});

test("generator and runtime of the contracts have one version", () => {
  expect(versionOf("@bufbuild/protoc-gen-es")).toBe(versionOf("@bufbuild/protobuf"));
});

const ENTRY = { version: "1.0.0", integrity: "sha512-x" };
const sample: Lock = {
  name: "sample",
  packages: {
    "": { name: "sample" },
    "node_modules/@bufbuild/buf": {
      version: "2.0.0",
      optionalDependencies: { "@bufbuild/buf-linux-x64": "2.0.0", "@bufbuild/buf-linux-armv7": "2.0.0" },
    },
    "node_modules/@bufbuild/buf-linux-x64": { ...ENTRY, version: "2.0.0" },
    "node_modules/z": ENTRY,
  },
};

test("a missing platform gets an entry that no other machine installs", () => {
  const fixed = withPlatforms(sample);
  expect(missingPlatforms(sample)).toEqual([["@bufbuild/buf-linux-armv7", "2.0.0"]]);
  expect(missingPlatforms(fixed)).toEqual([]);
  expect(fixed.packages["node_modules/@bufbuild/buf-linux-armv7"]).toMatchObject({
    version: "2.0.0",
    optional: true,
    os: ["linux"],
    cpu: ["arm"],
  });
  expect(Object.keys(fixed.packages)).toEqual([
    "",
    "node_modules/@bufbuild/buf",
    "node_modules/@bufbuild/buf-linux-armv7",
    "node_modules/@bufbuild/buf-linux-x64",
    "node_modules/z",
  ]);
});

test("an entry of another version is replaced, and the rest stays", () => {
  const old = "node_modules/@bufbuild/buf-linux-armv7";
  const fixed = withPlatforms({ ...sample, packages: { ...sample.packages, [old]: ENTRY } });
  expect(fixed.packages[old]).toMatchObject({ version: "2.0.0" });
  expect(fixed.packages[old]).not.toHaveProperty("integrity");
  expect(fixed.packages["node_modules/z"]).toEqual(ENTRY);
  expect(withPlatforms(fixed)).toEqual(fixed);
});
