/**
 * Replaces one of the platform's own implementations by a library when the process loads the implementation's
 * file. No setting of the product has this effect. The process loads this file first. The environment variable
 * BENCH_WITHOUT names the implementation.
 */
import { registerHooks } from "node:module";
import { PARTS } from "./parts.ts";

const files = PARTS[process.env.BENCH_WITHOUT ?? ""]?.files ?? {};

registerHooks({
  load(url, context, nextLoad) {
    const file = Object.keys(files).find((path) => url.endsWith(`/${path}`));
    const source = file === undefined ? undefined : files[file];
    return source === undefined
      ? nextLoad(url, context)
      : { format: "module-typescript", source, shortCircuit: true };
  },
});
