import type { readQuickly as own } from "../../../packages/dct/src/fast/read.ts";

/** Leaves every token to the parser of JSON. */
export const readQuickly: typeof own = () => undefined;
