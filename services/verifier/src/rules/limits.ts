import { DeputeError, ErrorReason } from "@depute/core";

/** The refusal of what would be more than may be kept, named by its limit. */
export function tooMany(limit: string, max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `more than ${max} ${limit}`, {
    metadata: { limit, max: String(max) },
  });
}
