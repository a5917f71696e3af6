import { create } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import { toWire } from "./errors-on-wire.ts";
import { createLogger, scrub } from "./log.ts";

const SECRET = "s3cret-value";

function logged(fields: object, message = "m"): string {
  let line = "";
  const log = createLogger({ level: "info", name: "test", destination: { write: (text) => (line += text) } });
  log.info(fields, message);
  return line;
}

describe("createLogger", () => {
  it("writes one JSON object a line", () => {
    const line = logged({ task: "t-1" }, "began");
    expect(line.endsWith("\n")).toBe(true);
    expect(JSON.parse(line)).toMatchObject({ level: "info", name: "test", task: "t-1", msg: "began" });
    expect(JSON.parse(line).time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  it.each([
    { authorization: SECRET },
    { headers: { authorization: SECRET, dpop: SECRET, "x-api-key": SECRET, "depute-internal": SECRET } },
    { request: { headers: { "x-api-key": SECRET, cookie: SECRET } } },
    { "x-api-key": SECRET },
    { token: SECRET, proof: SECRET, secret: SECRET },
    { caller: { token: SECRET, proof: SECRET } },
    { settings: { common: { password: SECRET, apiKey: SECRET, privateKey: SECRET } } },
  ])("redacts fields with secret names: %j", (fields) => {
    expect(logged(fields)).not.toContain(SECRET);
    expect(logged(fields)).toContain("[redacted]");
  });

  it.each([
    `sent Bearer ${SECRET}`,
    `sent dpop ${SECRET}`.replace("dpop", "DPoP"),
    "sent eyJhbGciOiJFZERTQSJ9.eyJqdGkiOiIxIn0.c2ln",
    "sent eyJhdXRob3JpdHkiOnt9fQ",
  ])("redacts text that looks like a credential: %s", (text) => {
    for (const line of [logged({}, text), logged({ err: new Error(text) }), logged({ note: [text] })]) {
      expect(line).toContain("[redacted]");
      expect(line).not.toMatch(/s3cret|eyJ/);
      expect(() => JSON.parse(line)).not.toThrow();
    }
  });

  it("writes a fault in flat fields, with its stack and those of its causes", () => {
    const cause = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    const line = JSON.parse(logged({ err: new TypeError("no connection", { cause }), task: "t-1" }));
    expect(line).toMatchObject({ error: "no connection", error_type: "TypeError", task: "t-1" });
    expect(line.error_stack).toMatch(/no connection[\s\S]+caused by: Error: refused/);
    expect(JSON.parse(logged({ err: cause }))).toMatchObject({
      error: "refused",
      error_code: "ECONNREFUSED",
    });
  });

  it("writes a refusal with its reason, and neither its stack nor descriptors", () => {
    const refusal = DeputeError.received(ErrorReason.TASK_NOT_FOUND, "no such task");
    const travelled = toWire(refusal);
    expect(JSON.parse(logged({ err: refusal }))).toMatchObject({ error_reason: "TASK_NOT_FOUND" });
    expect(JSON.parse(logged({ err: travelled }))).toMatchObject({
      error: "no such task",
      error_code: "NotFound",
    });
    for (const fields of [{ err: refusal }, { err: travelled }, { refusal: travelled.details[0] }]) {
      expect(logged(fields)).not.toMatch(/stack|desc|proto/);
    }
  });

  it("writes a protobuf message by its name alone", () => {
    const message = create(ErrorInfoSchema, { reason: "SECRET_OF_SOMEBODY" });
    expect(JSON.parse(logged({ message })).message).toBe("google.rpc.ErrorInfo");
  });

  it("keeps ordinary text unchanged", () => {
    const text = "the bearer of this message keyed eyJ and DPoP in";
    expect(scrub(text)).toBe(text);
  });
});
