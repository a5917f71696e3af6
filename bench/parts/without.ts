/**
 * Replaces one part of the platform by what it stands beside, as the process loads it: no setting of the product does so.
 * Loaded before everything else; the environment's BENCH_WITHOUT names the part.
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
