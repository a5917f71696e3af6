import { ErrorReasonSchema } from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import { refusalIn, toRpcError } from "../../edge/fault.ts";
import { asDenial, DELEGATEOS_ERRORS } from "./errors.ts";

describe("DelegateOS's errors", () => {
  test("every reason of the vocabulary has a row, in JSON-RPC's own codes or those left to servers", () => {
    for (const { number, name } of ErrorReasonSchema.values) {
      const row = DELEGATEOS_ERRORS.get(number as ErrorReason);
      expect(row, name).toBeDefined();
      const { code = 0, message = "" } = row ?? {};
      expect(message, name).not.toBe("");
      expect((code <= -32000 && code >= -32099) || [-32601, -32602, -32603].includes(code), name).toBe(true);
    }
  });

  test("a denied token has the code of the text, with the denial's type and the requested capability", () => {
    const refusal = new DeputeError(ErrorReason.TOKEN_DENIED, "the token is denied", {
      metadata: { denial: "capability_not_granted", detail: "web" },
    });
    const requested = {
      $typeName: "delegateos.v0.Capability",
      namespace: "web",
      action: "search",
      resource: "*",
    } as const;
    expect(toRpcError(DELEGATEOS_ERRORS, asDenial(refusal, requested), "r")).toEqual({
      code: -32001,
      message: "DCT verification failed",
      data: {
        type: "capability_not_granted",
        requested: { namespace: "web", action: "search", resource: "*" },
        detail: "web",
      },
    });
  });

  test("a denial of an unknown type still denies", () => {
    const refusal = new DeputeError(ErrorReason.TOKEN_DENIED, "no", { metadata: { denial: "of_tomorrow" } });
    expect(toRpcError(DELEGATEOS_ERRORS, asDenial(refusal), "r").data).toEqual({ type: "internal_context" });
  });

  test("every other fault stays unchanged", () => {
    const refusal = DeputeError.received(ErrorReason.CONTRACT_EXISTS, "taken");
    expect(refusalIn(asDenial(refusal))).toBe(refusal);
  });
});
