import { describe, expect, it } from "vitest";
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
  ])("does not write what is secret by its name: %j", (fields) => {
    expect(logged(fields)).not.toContain(SECRET);
    expect(logged(fields)).toContain("[redacted]");
  });

  it.each([
    `sent Bearer ${SECRET}`,
    `sent dpop ${SECRET}`.replace("dpop", "DPoP"),
    "sent eyJhbGciOiJFZERTQSJ9.eyJqdGkiOiIxIn0.c2ln",
    "sent eyJhdXRob3JpdHkiOnt9fQ",
  ])("does not write what looks like a credential: %s", (text) => {
    for (const line of [logged({}, text), logged({ err: new Error(text) }), logged({ note: [text] })]) {
      expect(line).toContain("[redacted]");
      expect(line).not.toMatch(/s3cret|eyJ/);
      expect(() => JSON.parse(line)).not.toThrow();
    }
  });

  it("leaves ordinary text alone", () => {
    const text = "the bearer of this message keyed eyJ and DPoP in";
    expect(scrub(text)).toBe(text);
  });
});
