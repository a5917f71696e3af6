/**
 * Replaces one of the platform's own implementations by a library when the process loads the implementation's
 * file. No setting of the product has this effect. The process loads this file first. The environment variable
 * BENCH_WITHOUT names the implementation.
 */
import { registerHooks } from "node:module";
import { basename } from "node:path";
import { PARTS } from "./parts.ts";

const file = PARTS[process.env.BENCH_WITHOUT ?? ""]?.file;

if (file !== undefined) {
  const library = new URL(`libraries/${basename(file)}`, import.meta.url).href;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      return resolved.url.endsWith(`/${file}`) ? { ...resolved, url: library, shortCircuit: true } : resolved;
    },
  });
}
