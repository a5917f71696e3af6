import type { isSureToKeepRules as own } from "../../../packages/core/src/quick-rules.ts";

/** Leaves every message to protovalidate. */
export const isSureToKeepRules: typeof own = () => false;
