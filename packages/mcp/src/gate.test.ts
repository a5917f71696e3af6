import { create } from "@bufbuild/protobuf";
import { DenialReasonSchema, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { expect, test } from "vitest";
import type { Grants } from "./authoriser.ts";
import { admitWish } from "./gate.ts";
import { once } from "./presentation.ts";
import { gatedRequestOf } from "./rules/methods.ts";
import { readConfig, type UpstreamConfig } from "./rules/read-config.ts";
import type { Right } from "./rules/visible.ts";
import { FakeAuthoriser, refusal } from "./testing/parts.ts";

const MAP = {
  methods: { "sampling/createMessage": { namespace: "llm", action: "generate", resource: "client/one" } },
};
const { upstreams } = readConfig({ upstreams: { bench: { map: MAP } } }, new Map());
const { map } = upstreams.get("bench") as UpstreamConfig;

/**
 * Calls admitWish for a request that a server makes during a call, with the capabilities that the call's token grants.
 * If the call has no token, `granted` is undefined.
 */
async function wish(
  granted: Grants | undefined,
  { method = "sampling/createMessage", requireToken = true } = {},
) {
  const authoriser = new FakeAuthoriser();
  if (granted !== undefined) authoriser.grants = async () => granted;
  const presentation = granted && once("token", "", undefined);
  const options = { authoriser, requireToken, realPath: async () => undefined };
  await admitWish(options, gatedRequestOf(method, {}, map), presentation);
  // A request of the server has no proof, so the proxy must not have verified the call's token again.
  expect(authoriser.verified).toEqual([]);
}

const grantsOf = (...capabilities: Right[]): Grants => ({ ok: true, capabilities, holder: "holder" });
const right = (namespace: string, action: string, resource: string): Right => ({
  namespace,
  action,
  resource,
});

test.each([
  ["the right itself", grantsOf(right("docs", "read", "x"), right("llm", "generate", "client/one"))],
  ["a pattern of it", grantsOf(right("llm", "generate", "client/*"))],
])("a server's request is allowed by %s", async (_, granted) => {
  await wish(granted);
});

test.each([
  ["nothing", grantsOf()],
  ["another namespace", grantsOf(right("code", "generate", "**"))],
  ["another action", grantsOf(right("llm", "complete", "**"))],
  ["another resource", grantsOf(right("llm", "generate", "client"))],
])("refuses a server's request by a token for %s, with the denial", async (_, granted) => {
  expect(await refusal(wish(granted))).toMatchObject({
    code: -32001,
    data: {
      type: "capability_not_granted",
      requested: right("llm", "generate", "client/one"),
      granted: granted.ok ? granted.capabilities : [],
    },
  });
});

test("a server's request is refused if the token was revoked since the call", async () => {
  const denial = create(DenialReasonSchema, { type: DenialType.REVOKED });
  expect(await refusal(wish({ ok: false, denial }))).toMatchObject({
    code: -32001,
    data: { type: "revoked" },
  });
});

test("a server's request in a call without a token is decided like the call", async () => {
  expect(await refusal(wish(undefined))).toMatchObject({ data: { type: "capability_not_granted" } });
  await wish(undefined, { requireToken: false });
});

test("refuses a server's request without a rule, for every token", async () => {
  const all = grantsOf(right("llm", "generate", "**"));
  expect(await refusal(wish(all, { method: "roots/list" }))).toMatchObject({
    code: -32001,
    data: { type: "capability_not_granted" },
  });
});
