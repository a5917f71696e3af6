import { compilePattern, compileSchema, violationsText } from "@depute/wire/json-schema";
import type { CheckEngines } from "../rules/check-registry.ts";

/** Compiles on the test's own thread, which is safe because the schemas and patterns are the test's own. */
export const engines: CheckEngines = {
  matcher: compilePattern,
  validator: (schema) => {
    const compiled = compileSchema(schema, "draft-07", "contract");
    return (value) => violationsText(compiled(value)) || undefined;
  },
};
