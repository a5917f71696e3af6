import { describe, expect, test, vi } from "vitest";
import { argumentsDigest } from "./digest.ts";
import { bench, type Json, LIST, refusal, text, token, tool } from "./testing/parts.ts";

const ANSWERS = { ...LIST, "tools/call": ({ name }: Json) => text(`${name} was called`) };

describe("a call without a token (M1)", () => {
  test.each([
    ["tools/call", { name: "fixed", arguments: {} }],
    ["tools/call", { name: "unmapped" }],
    ["resources/read", { uri: "note://one" }],
    ["prompts/get", { name: "one" }],
    [
      "completion/complete",
      { ref: { type: "ref/prompt", name: "one" }, argument: { name: "a", value: "b" } },
    ],
  ])("%s is denied", async (method, params) => {
    const { proxy, received } = bench(ANSWERS);
    expect(await refusal(proxy.handle({ method, params }))).toMatchObject({
      code: -32001,
      data: { type: "capability_not_granted", granted: [] },
    });
    expect(received).toEqual([]);
  });

  test.each([
    "resources/subscribe",
    "logging/setLevel",
    "tasks/list",
    "sampling/createMessage",
    "x/y",
    "constructor",
  ])("refuses %s, a method without a rule, even with a token", async (method) => {
    const { proxy, received } = bench(ANSWERS);
    expect(await refusal(proxy.handle({ method, params: {}, presentation: token("one") }))).toMatchObject({
      code: -32601,
    });
    expect(received).toEqual([]);
  });

  test("is allowed by configuration, for tools with a rule", async () => {
    const { proxy, authoriser } = bench(ANSWERS, { requireToken: false });
    const call = (name: string) => proxy.handle({ method: "tools/call", params: { name } });
    expect(await call("fixed")).toEqual(text("fixed was called"));
    expect(await refusal(call("unmapped"))).toMatchObject({ code: -32001 });
    expect(authoriser.verified).toEqual([]);
  });

  test("of a method that the configuration allows is forwarded", async () => {
    const { proxy, received } = bench(
      { ...ANSWERS, "x/y": () => ({ fine: true }) },
      { map: { passed: ["x/y"] } },
    );
    expect(await proxy.handle({ method: "x/y", params: { a: 1 } })).toEqual({ fine: true });
    expect(received).toEqual([{ method: "x/y", params: { a: 1 } }]);
  });
});

describe("a tool without a rule (M2)", () => {
  test.each(["unmapped", "__proto__", "constructor", "toString", "", "Fixed", "fixed ", "f\u0456xed"])(
    "%j is not granted",
    async (name) => {
      const { call, authoriser, received } = bench(ANSWERS);
      expect(await refusal(call(name))).toMatchObject({ data: { type: "capability_not_granted" } });
      expect([authoriser.verified, received]).toEqual([[], []]);
    },
  );
});

describe("the check covers exactly the forwarded arguments (M3)", () => {
  const withMember = {
    name: "named",
    arguments: { of: "one", nested: [{ _delegateos: { dct: "x" }, kept: 1 }], _delegateos: { dct: "y" } },
    _meta: { _delegateos: { dct: "z" }, trace: "kept", progressToken: 7, "io.modelcontextprotocol/x": 1 },
    _delegateos: {
      dct: "one",
      format: "delegateos-sjt-v1",
      delegationId: "del_000000000001",
      contractId: "ct_000000000001",
      proof: "proof",
    },
  };

  test("_delegateos is removed at every depth, and the digest covers the rest", async () => {
    const { proxy, received, authoriser } = bench(ANSWERS);
    await proxy.handle({ method: "tools/call", params: withMember });
    const args = { of: "one", nested: [{ kept: 1 }] };
    expect(received.at(-1)?.params).toEqual({ name: "named", arguments: args, _meta: { trace: "kept" } });
    expect(authoriser.verified).toMatchObject([
      {
        presented: { token: "one", contractId: "ct_000000000001", proof: { jwt: "proof", method: "MCP" } },
        right: { namespace: "data", action: "query", resource: "one" },
        digest: argumentsDigest(args),
      },
    ]);
  });

  test.each([
    ["a number", 7],
    ["another format", { ...withMember._delegateos, format: "delegateos-biscuit-v1" }],
    ["unknown members", { ...withMember._delegateos, extra: 1 }],
    ["no token", { ...withMember._delegateos, dct: "" }],
  ])("%s for _delegateos is malformed, even beside another presentation", async (_, member) => {
    const { proxy, received } = bench(ANSWERS);
    const params = { name: "fixed", _delegateos: member };
    expect(
      await refusal(proxy.handle({ method: "tools/call", params, presentation: token("one") })),
    ).toMatchObject({ code: -32001, data: { type: "malformed_token" } });
    expect(received).toEqual([]);
  });

  test("arguments without a canonical form, which no proof can be about, are refused", async () => {
    const { call, received } = bench(ANSWERS);
    expect(await refusal(call("fixed", { half: "\ud800" }))).toMatchObject({ code: -32602 });
    expect(received).toEqual([]);
  });

  test("a member named __proto__ stays a member", async () => {
    const { call, received } = bench(ANSWERS);
    await call("named", JSON.parse('{"of": "one", "__proto__": {"of": "two"}, "x": {"_delegateos": 1}}'));
    expect(JSON.stringify(received.at(-1)?.params.arguments)).toBe(
      '{"of":"one","__proto__":{"of":"two"},"x":{}}',
    );
  });
});

test("authority is valid for one request alone (M4)", async () => {
  const { call, received } = bench(ANSWERS);
  const calls = ["one", "two", "one", "two"].map((name) => call("named", { of: "one" }, token(name)));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
  expect(received.filter(({ method }) => method === "tools/call")).toHaveLength(2);
});

test("a proof is valid for one call (M4, B6)", async () => {
  const { call } = bench(ANSWERS);
  const presentation = token("one");
  await call("fixed", {}, presentation);
  expect(await refusal(call("fixed", {}, presentation))).toMatchObject({ data: { type: "proof_required" } });
});

test("checks a listed tool again when it is called (M5)", async () => {
  const { proxy, call } = bench(ANSWERS);
  const { tools } = await proxy.handle({ method: "tools/list", params: {}, presentation: token("one") });
  expect((tools as Json[]).map(({ name }) => name)).toEqual(["fixed", "paid", "metered", "named"]);
  expect(await refusal(call("named", { of: "two" }))).toMatchObject({
    data: { type: "capability_not_granted" },
  });
});

describe("a tool that changes (M6)", () => {
  const changing = () => {
    let description = "reads";
    const answers = { ...ANSWERS, "tools/list": () => ({ tools: [tool("fixed", description)] }) };
    const made = bench(answers, { requireToken: false });
    const list = (authority: Authority = { presentation: token("one") }) =>
      made.proxy.handle({ method: "tools/list", params: {}, ...authority });
    const use = (authority: Authority = { presentation: token("one") }) =>
      made.proxy.handle({ method: "tools/call", params: { name: "fixed", arguments: {} }, ...authority });
    const change = (to = "sends data to any address") => {
      description = to;
    };
    return { ...made, list, use, change };
  };
  type Authority = { presentation?: ReturnType<typeof token>; session?: string };
  const sinceListed = {
    data: { type: "capability_not_granted", detail: expect.stringContaining("list again") },
  };
  const neverListed = {
    data: { type: "capability_not_granted", detail: expect.stringContaining("list first") },
  };

  test("a definition that changed without an announcement is not called until it is listed again", async () => {
    const { use, list, change } = changing();
    await list();
    expect(await use()).toEqual(text("fixed was called"));
    change();
    expect(await refusal(use())).toMatchObject(sinceListed);
    await list();
    expect(await use()).toEqual(text("fixed was called"));
  });

  test("is not called by a caller that has not seen the new list", async () => {
    const { use, list, change } = changing();
    const [one, other] = [{ session: "one" }, { session: "other" }];
    await list(one);
    await list(other);
    change();
    await list(other);
    expect(await refusal(use(one))).toMatchObject(sinceListed);
    expect(await use(other)).toEqual(text("fixed was called"));
  });

  test("is not called by a caller that has not listed: with a new token, or with none", async () => {
    const { use, list, change } = changing();
    await list();
    expect(await use({})).toEqual(text("fixed was called"));
    change();
    expect(await refusal(use({ presentation: token("one", "two") }))).toMatchObject(neverListed);
    expect(await refusal(use({}))).toMatchObject(neverListed);
  });

  test("after its configuration is not called", async () => {
    const map = {
      tools: { fixed: { namespace: "data", action: "query", resource: "one", definition: "A".repeat(43) } },
    };
    const { call } = bench(ANSWERS, { map });
    expect(await refusal(call("fixed"))).toMatchObject({
      data: {
        detail:
          "the tool's definition differs from the one that the tool map pins: review it, then pin it again",
      },
    });
  });

  test("and disappears is not called", async () => {
    const { call } = bench({ ...ANSWERS, "tools/list": () => ({ tools: [] }) });
    expect(await refusal(call("fixed"))).toMatchObject({
      data: { detail: "the tool does not exist on the server" },
    });
  });
});

describe("an argument that names no resource (M7)", () => {
  test.each([
    ["a number", 7],
    ["an object", {}],
    ["null", null],
    ["true", true],
    ["a list with a number", ["one", 1]],
    ["a wildcard", "o*"],
    ["an empty text", ""],
  ])("%s is denied", async (_, of) => {
    const { call, authoriser } = bench(ANSWERS);
    expect(await refusal(call("named", { of }))).toMatchObject({
      code: -32001,
      data: { type: "invalid_resource" },
    });
    expect(authoriser.verified).toEqual([]);
  });

  test.each([
    ["none", {}],
    ["a member of another name", { OF: "one" }],
    ["an empty list", { of: [] }],
  ])("%s requests every resource", async (_, args) => {
    const { call, authoriser } = bench(ANSWERS);
    await refusal(call("named", args));
    expect(authoriser.verified.map(({ right }) => right?.resource)).toEqual(["*"]);
  });
});

test.each([
  ["some of", token("one"), false],
  ["all of", token("one", "two"), true],
])("several resources in one call with a token for %s them", async (_, presentation, isAllowed) => {
  const { call, authoriser, received } = bench(ANSWERS);
  const answer = call("named", { of: ["one", "two"] }, presentation);
  if (isAllowed) await answer;
  else expect(await refusal(answer)).toMatchObject({ data: { type: "capability_not_granted" } });
  expect(authoriser.verified).toHaveLength(1);
  expect(received.filter(({ method }) => method === "tools/call")).toHaveLength(isAllowed ? 1 : 0);
});

test("a proof in _delegateos must name this proxy (M8)", async () => {
  const { proxy, authoriser } = bench(ANSWERS);
  const member = {
    dct: "one",
    format: "delegateos-sjt-v1",
    delegationId: "del_000000000001",
    contractId: "ct_000000000001",
  };
  const params = { name: "fixed", _delegateos: { ...member, proof: "theirs" } };
  await proxy.handle({ method: "tools/call", params });
  expect(authoriser.verified[0]?.presented.proof).toEqual({
    jwt: "theirs",
    method: "MCP",
    target: "mcp:bench",
  });
});

describe("a server that fails (M9, B4)", () => {
  const held = { reservedMicrocents: 100 };

  test("crashes during a call: the caller gets the charge", async () => {
    const { call, authoriser } = bench({
      ...LIST,
      "tools/call": (_, server) => new Promise(() => void server.close()),
    });
    expect(await refusal(call("paid"))).toMatchObject({
      code: -32603,
      data: {
        reason: "DEPENDENCY_UNAVAILABLE",
        budget: { state: "charged", ...held, chargedMicrocents: 100 },
      },
    });
    expect(authoriser.settled).toEqual(["1:100 commits 100"]);
  });

  test("is restarted for the next call", async () => {
    let died = false;
    const { call, servers } = bench({
      ...LIST,
      "tools/call": (_, server) => {
        if (died) return text("back");
        died = true;
        return new Promise(() => void server.close());
      },
    });
    await refusal(call("paid"));
    expect(await call("paid")).toEqual(text("back"));
    expect(servers).toHaveLength(2);
  });

  test("times out: the call is charged", async () => {
    const { call } = bench({ ...LIST, "tools/call": () => new Promise(() => {}) }, { timeoutMs: 50 });
    expect(await refusal(call("paid"))).toMatchObject({
      code: -32603,
      data: { reason: "DEADLINE_EXCEEDED", budget: { state: "charged", chargedMicrocents: 100 } },
    });
  });

  test("returns an invalid answer: the call is charged", async () => {
    const { call } = bench({ ...LIST, "tools/call": () => ({ content: "none" }) });
    expect(await refusal(call("paid"))).toMatchObject({
      code: -32603,
      data: { detail: expect.stringMatching(/^malformed/), budget: { state: "charged" } },
    });
  });

  test("returns an error: it is forwarded, and the call is charged", async () => {
    const { call } = bench({
      ...LIST,
      "tools/call": () => {
        throw Object.assign(new Error("no such table"), { code: -32011, data: { table: "x" } });
      },
    });
    expect(await refusal(call("paid"))).toMatchObject({
      code: -32011,
      message: "no such table",
      data: { data: { table: "x" }, budget: { state: "charged", chargedMicrocents: 100 } },
    });
  });

  test("is unreachable: the call is neither reserved nor charged", async () => {
    const { call, authoriser, proxy } = bench(ANSWERS);
    await proxy.upstream.close();
    expect(await refusal(call("paid"))).toMatchObject({ code: -32603, data: { budget: { state: "none" } } });
    expect(authoriser.settled).toEqual([]);
  });
});

describe("the budget", () => {
  test.each([
    ["the amount in the answer", { cost: 30 }, "1:100 commits 30"],
    ["the whole reservation if the answer states no amount", {}, "1:100 commits 100"],
    ["the whole reservation if the answer states more", { cost: 101 }, "1:100 commits 100"],
    ["the whole reservation if the number is invalid", { cost: -1 }, "1:100 commits 100"],
    ["the whole reservation if it is not a number", { cost: "0" }, "1:100 commits 100"],
  ])("is charged %s", async (_, meta, settled) => {
    const { call, authoriser } = bench({ ...LIST, "tools/call": () => ({ ...text("done"), _meta: meta }) });
    await call("metered");
    await vi.waitFor(() => expect(authoriser.settled).toEqual([settled]));
  });

  test("is reserved before the call: an insufficient budget prevents it", async () => {
    const { call, authoriser, received } = bench(ANSWERS);
    authoriser.budget = 250;
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => call("paid")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(received.filter(({ method }) => method === "tools/call")).toHaveLength(2);
  });

  test("is not used by a call without a cost", async () => {
    const { call, authoriser } = bench(ANSWERS);
    authoriser.budget = 0;
    expect(await call("fixed")).toEqual(text("fixed was called"));
  });

  test("is unchanged by a call that the verifier could not check", async () => {
    const { call, authoriser, received, faults } = bench(ANSWERS);
    authoriser.verify = async () => {
      throw new Error("no answer");
    };
    expect(await refusal(call("paid"))).toMatchObject({
      code: -32603,
      data: { reason: "DEPENDENCY_UNAVAILABLE" },
    });
    expect([received, faults]).toEqual([[], [new Error("no answer")]]);
  });
});

test("an agent whose manifest does not bind the tool is denied (CAP)", async () => {
  const { call, authoriser, received } = bench(ANSWERS);
  authoriser.bound = false;
  expect(await refusal(call("fixed"))).toMatchObject({
    data: { type: "capability_not_granted", detail: "the agent's mcp_bindings do not allow the tool" },
  });
  expect(received).toEqual([]);
});
