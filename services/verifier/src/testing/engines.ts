import { compilePattern, compileSchema, violationsText } from "@depute/wire/json-schema";
import type { CheckEngines } from "../rules/check-registry.ts";

/** Compiles in this thread: for schemas and patterns that a test wrote. */
export const engines: CheckEngines = {
  matcher: compilePattern,
  validator: (schema) => {
    const compiled = compileSchema(schema, "draft-07", "contract");
    return (value) => violationsText(compiled(value)) || undefined;
  },
};
