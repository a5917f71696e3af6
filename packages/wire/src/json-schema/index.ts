export {
  type CompiledSchema,
  compilePublished,
  compileSchema,
  InvalidSchema,
  MAX_VIOLATIONS,
  type Strictness,
  type Violation,
  violationsText,
} from "./compile.ts";
export { SCHEMA_LIMITS } from "./limits.ts";
export type { Dialect } from "./meta-schemas.ts";
export { compilePattern, type LinearPattern, UnsupportedPattern } from "./patterns.ts";
export { fitsQuickly, type QuickSchema, readQuickSchema, valueFitsQuickly } from "./quick-schema.ts";
