import { Code, ConnectError } from "@connectrpc/connect";
import { DeputeError, ErrorReason } from "@depute/core";
import { expect, it } from "vitest";
import { toWire } from "../errors-on-wire.ts";
import { verdictOf } from "./verdict-of.ts";

it.each([
  ["an answer", undefined, { decision: "allowed", reason: "" }],
  [
    "a refusal on authority",
    toWire(new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "no")),
    { decision: "denied", reason: "caller_not_allowed" },
  ],
  [
    "missing credentials",
    toWire(new DeputeError(ErrorReason.UNAUTHENTICATED, "no")),
    { decision: "denied", reason: "unauthenticated" },
  ],
  [
    "a refused field, which decides nothing",
    toWire(new DeputeError(ErrorReason.INVALID_REQUEST, "no")),
    undefined,
  ],
  [
    "a call that its caller left",
    new ConnectError("left", Code.Canceled),
    { decision: "allowed", reason: "canceled" },
  ],
])("%s", (_, thrown, verdict) => {
  expect(verdictOf(thrown)).toEqual(verdict);
});
