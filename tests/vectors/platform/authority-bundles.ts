import { portableEngine as engine, verifyAuthorityBundle } from "@depute/dct";
import type { Operations } from "./answer.ts";

export const authorityBundleOperations: Operations = {
  verify({ bundle, roots }) {
    const trusted = { roots: new Set<string>(roots), logs: new Set<string>() };
    const { checks } = verifyAuthorityBundle(engine, JSON.stringify(bundle), trusted);
    const failed = checks.find(({ ok }) => !ok);
    return failed === undefined ? { expected: { valid: true } } : { refusal: failed.name };
  },
};
