import { ErrorReason } from "@depute/core";
import { expect, test } from "vitest";
import { refusalIn } from "../../edge/fault.ts";
import { OAuthFault, toOAuthError } from "./errors.ts";

test("a refusal of the token endpoint is a fault of the request, and the log has no error for it", () => {
  const fault = new OAuthFault("unsupported_grant_type", "grant_type must be another one");
  expect(refusalIn(fault).reason).toBe(ErrorReason.INVALID_REQUEST);
  expect(toOAuthError(fault)).toEqual({
    status: 400,
    body: {
      error: "unsupported_grant_type",
      error_description: "grant_type must be another one",
      reason: "INVALID_REQUEST",
    },
  });
});
