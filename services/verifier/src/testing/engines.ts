import { compilePattern, compileSchema, violationsText } from "@depute/wire/json-schema";
import type { CheckEngines } from "../rules/check-registry.ts";

/** Compiles on the test's own thread. This is safe, because the tests contain all these schemas and patterns. */
export const engines: CheckEngines = {
  matcher: compilePattern,
  validator: (schema) => {
    const compiled = compileSchema(schema, "draft-07", "contract");
    return (value) => violationsText(compiled(value)) || undefined;
  },
};
