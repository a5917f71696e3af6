import { create } from "@bufbuild/protobuf";
import {
  HolderSessionService,
  OpenHolderSessionRequestSchema,
} from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { ReserveSpendRequestSchema, SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService, VerifyTokenRequestSchema } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { expect, test } from "vitest";
import { isRepeatable } from "./repeatable-call.ts";

test.each([
  { what: "a read", method: TokenService.method.getIssuer, message: undefined, is: true },
  {
    what: "a call with a request id",
    method: SpendService.method.reserveSpend,
    message: create(ReserveSpendRequestSchema, { requestId: "one" }),
    is: true,
  },
  {
    what: "a call without a request id",
    method: SpendService.method.reserveSpend,
    message: create(ReserveSpendRequestSchema),
    is: false,
  },
  {
    what: "a call with a holder proof, which counts once",
    method: TokenService.method.verifyToken,
    message: create(VerifyTokenRequestSchema, { proof: { jwt: "a.b.c" } }),
    is: false,
  },
  {
    what: "the same call without a proof",
    method: TokenService.method.verifyToken,
    message: create(VerifyTokenRequestSchema, { proof: {} }),
    is: true,
  },
  {
    what: "a call with the text of a proof",
    method: HolderSessionService.method.openHolderSession,
    message: create(OpenHolderSessionRequestSchema, { proof: "a.b.c" }),
    is: false,
  },
])("$what: $is", ({ method, message, is }) => {
  expect(isRepeatable(method, message)).toBe(is);
});
