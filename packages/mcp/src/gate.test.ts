import { create } from "@bufbuild/protobuf";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { expect, test } from "vitest";
import type { Grants } from "./authoriser.ts";
import { admitWish } from "./gate.ts";
import { once } from "./presentation.ts";
import { askedBy } from "./rules/methods.ts";
import { readConfig, type UpstreamConfig } from "./rules/read-config.ts";
import type { Right } from "./rules/visible.ts";
import { FakeAuthoriser, refusal } from "./testing/parts.ts";

const MAP = {
  methods: { "sampling/createMessage": { namespace: "llm", action: "generate", resource: "client/one" } },
};
const { upstreams } = readConfig({ upstreams: { bench: { map: MAP } } }, new Map());
const { map } = upstreams.get("bench") as UpstreamConfig;

/** Judges a server's wish under a token whose proof has counted; undefined for one that came without. */
async function wish(
  granted: Grants | undefined,
  { method = "sampling/createMessage", requireToken = true } = {},
) {
  const authoriser = new FakeAuthoriser();
  if (granted !== undefined) authoriser.grants = async () => granted;
  const presentation = granted && once("token", "", undefined);
  const options = { authoriser, requireToken, realPath: async () => undefined };
  await admitWish(options, askedBy(method, {}, map), presentation);
  // Verifying would ask for a proof that there is none of.
  expect(authoriser.verified).toEqual([]);
}

const of = (...capabilities: Right[]): Grants => ({ ok: true, capabilities });
const right = (namespace: string, action: string, resource: string): Right => ({
  namespace,
  action,
  resource,
});

test.each([
  ["the right itself", of(right("docs", "read", "x"), right("llm", "generate", "client/one"))],
  ["a pattern of it", of(right("llm", "generate", "client/*"))],
])("a wish passes by %s", async (_, granted) => {
  await wish(granted);
});

test.each([
  ["nothing", of()],
  ["another namespace", of(right("code", "generate", "**"))],
  ["another action", of(right("llm", "complete", "**"))],
  ["another resource", of(right("llm", "generate", "client"))],
])("a wish is refused by a token for %s, which is told", async (_, granted) => {
  expect(await refusal(wish(granted))).toMatchObject({
    code: -32001,
    data: {
      type: "capability_not_granted",
      requested: right("llm", "generate", "client/one"),
      granted: granted.ok ? granted.capabilities : [],
    },
  });
});

test("a wish is refused when the token was taken back since the call", async () => {
  const denial = create(DenialReasonSchema, { type: DenialType.REVOKED });
  expect(await refusal(wish({ ok: false, denial }))).toMatchObject({
    code: -32001,
    data: { type: "revoked" },
  });
});

test("a wish within a call without a token is as the call is", async () => {
  expect(await refusal(wish(undefined))).toMatchObject({ data: { type: "capability_not_granted" } });
  await wish(undefined, { requireToken: false });
});

test("a wish that no rule knows is granted to nobody", async () => {
  const all = of(right("llm", "generate", "**"));
  expect(await refusal(wish(all, { method: "roots/list" }))).toMatchObject({
    code: -32001,
    data: { type: "capability_not_granted" },
  });
});
