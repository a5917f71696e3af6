import { DeputeError, ErrorReason } from "@depute/core";

/** Returns the error for a limit of the store that is reached, with the limit's name and maximum. */
export function tooMany(limit: string, max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `more than ${max} ${limit}`, {
    metadata: { limit, max: String(max) },
  });
}
