import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { DiscoverCapabilitiesResponse } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { asJson, capability, json } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
let requests = 0;

async function agent(
  id: string,
  principal: string,
  leaseMs: number,
  capabilities: ReturnType<typeof capability>[],
) {
  const registered = { id, principal, leaseDuration: durationFromMs(leaseMs), version: `${id}-v` };
  await platform.agents.registerAgent({ requestId: `r${++requests}`, agent: registered }, as(principal));
  await platform.agents.publishCapabilities(
    { requestId: `r${++requests}`, agentId: id, capabilities },
    as(principal),
  );
}

const sentiment = capability("sentiment", {
  cat: "nlp",
  desc: "Analyzes text sentiment.",
  input: { type: "object", properties: { text: { type: "string" } } },
  output: { type: "object", properties: { score: { type: "number" } } },
  examples: [{ in: { text: "I love it" }, out: { score: 0.95 } }],
});

async function start(args: string[] = []) {
  platform = await startPlatform(args);
  await agent("alpha", ALICE, 0, [
    sentiment,
    capability("summarize", { cat: "NLP", desc: "Shortens text." }),
  ]);
  await agent("beta", BOB, 1_000, [
    capability("translate", { cat: "nlp", desc: "Translates text." }),
    capability("sentiment", { cat: "audio", desc: "Hears the mood." }),
  ]);
  await agent("gone", BOB, 0, [capability("sentiment"), capability("vanish")]);
  await platform.agents.deregisterAgent({ agentId: "gone" }, as(BOB));
}

beforeEach(() => start());
afterEach(() => platform.stop());

const names = ({ capabilities }: DiscoverCapabilitiesResponse) =>
  capabilities.map((each) => `${each.agentId}/${each.capability.value?.id}`);

const ALL = ["alpha/sentiment", "beta/sentiment", "alpha/summarize", "beta/translate"];

describe("DiscoverCapabilities", () => {
  it("returns only id, category and hash at level 0", async () => {
    const { capabilities } = await platform.discovery.discoverCapabilities({ level: 0, agentId: "alpha" });
    expect(capabilities.map((each) => ({ ...each.capability.value }))).toEqual([
      { $typeName: "nekte.v1.CapabilityRef", id: "sentiment", cat: "nlp", h: "f53655e9" },
      {
        $typeName: "nekte.v1.CapabilityRef",
        id: "summarize",
        cat: "NLP",
        h: expect.stringMatching(/^[0-9a-f]{8}$/),
      },
    ]);
    expect(capabilities[0]).toMatchObject({ agentId: "alpha", agentVersion: "alpha-v" });
  });

  it("adds description and cost at level 1, schemas and examples at level 2", async () => {
    const at = async (level: number) => {
      const filter = { id: "sentiment" };
      const answer = await platform.discovery.discoverCapabilities({ level, agentId: "alpha", filter });
      return answer.capabilities[0]?.capability;
    };
    const summary = {
      id: "sentiment",
      cat: "nlp",
      h: "f53655e9",
      desc: sentiment.desc,
      cost: sentiment.cost,
    };
    expect(await at(1)).toEqual({
      case: "summary",
      value: { $typeName: "nekte.v1.CapabilitySummary", ...summary },
    });
    const full = await at(2);
    expect(full?.case === "full" && asJson(full.value)).toEqual(asJson({ ...sentiment, h: "f53655e9" }));
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ["everything that living agents offer", {}, ALL],
    [
      "a category, ignoring case",
      { filter: { category: "Nlp" } },
      ["alpha/sentiment", "alpha/summarize", "beta/translate"],
    ],
    ["an id", { filter: { id: "sentiment" } }, ["alpha/sentiment", "beta/sentiment"]],
    ["an id in its own case of letters", { filter: { id: "Sentiment" } }, []],
    ["an agent", { agentId: "beta" }, ["beta/sentiment", "beta/translate"]],
    ["an agent and a category", { agentId: "beta", filter: { category: "nlp" } }, ["beta/translate"]],
    ["the first of them", { filter: { topK: 3 } }, ALL.slice(0, 3)],
    [
      "free text, best match first",
      { filter: { query: "SENTIMENT text" } },
      ["alpha/sentiment", "beta/sentiment", "alpha/summarize", "beta/translate"],
    ],
    ["free text in a category", { filter: { query: "sentiment", category: "audio" } }, ["beta/sentiment"]],
    [
      "free text above a threshold",
      { filter: { query: "sentiment text", threshold: 0.5 } },
      ["alpha/sentiment", "beta/sentiment"],
    ],
    ["the best of free text", { filter: { query: "text", topK: 2 } }, ["alpha/sentiment", "alpha/summarize"]],
    ["the start of a word", { filter: { query: "trans" } }, ["beta/translate"]],
    ["text with the syntax of a database", { filter: { query: "%_" } }, []],
    ["empty members, which do not narrow", { filter: { category: "", query: "", id: "" } }, ALL],
  ])("finds %s", async (_, request, expected) => {
    expect(names(await platform.discovery.discoverCapabilities(request))).toEqual(expected);
    const paged: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.discovery.discoverCapabilities({ ...request, pageSize: 1, pageToken });
      expect(page.capabilities.length).toBeLessThanOrEqual(1);
      paged.push(...names(page));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(paged).toEqual(expected);
  });

  it("visits every capability in a search over several batches", async () => {
    const many = Array.from({ length: 256 }, (_, i) =>
      capability(`c${i}`, { desc: i === 200 ? "needle" : "hay needles" }),
    );
    for (const id of ["x", "y", "z"]) await agent(id, ALICE, 0, many);
    const answer = await platform.discovery.discoverCapabilities({
      filter: { query: "needle" },
      pageSize: 4,
    });
    expect(names(answer)).toEqual(["x/c200", "y/c200", "z/c200", "x/c0"]);
    const all = await platform.discovery.discoverCapabilities({
      filter: { query: "needle" },
      pageSize: 1000,
    });
    expect(all.capabilities).toHaveLength(3 * 256);
  });

  it("omits an agent with an expired lease until its next heartbeat", async () => {
    platform.clock.advance(1_000);
    expect(names(await platform.discovery.discoverCapabilities({}))).toEqual([
      "alpha/sentiment",
      "alpha/summarize",
    ]);
    expect(names(await platform.discovery.discoverCapabilities({ filter: { query: "mood" } }))).toEqual([]);
    await platform.agents.heartbeatAgent({ agentId: "beta" }, as(BOB));
    expect(names(await platform.discovery.discoverCapabilities({}))).toEqual(ALL);
  });

  it("refuses a request for an agent that is not alive", async () => {
    platform.clock.advance(1_000);
    for (const agentId of ["beta", "gone", "nobody"]) {
      expect(await refusal(platform.discovery.discoverCapabilities({ agentId }))).toMatchObject({
        reason: "AGENT_NOT_FOUND",
        metadata: { agent: agentId },
      });
    }
  });

  it("refuses a page token of another search", async () => {
    const first = await platform.discovery.discoverCapabilities({ pageSize: 1 });
    const pageToken = first.nextPageToken;
    for (const request of [
      { pageToken, agentId: "alpha" },
      { pageToken, filter: { category: "nlp" } },
      { pageToken, filter: { query: "text" } },
      { pageToken, filter: { topK: 2 } },
      { pageToken: "nonsense" },
    ]) {
      expect(await refusal(platform.discovery.discoverCapabilities(request))).toMatchObject({
        reason: "PAGE_TOKEN_INVALID",
      });
    }
  });

  it("sends the other published hash length if configured", async () => {
    await platform.stop();
    await start(["--version-hash-length", "16"]);
    const { capabilities } = await platform.discovery.discoverCapabilities({ filter: { id: "sentiment" } });
    expect(capabilities[0]?.capability.value?.h).toBe("f53655e974b05aa5");
  });
});

describe("ResolveCapability", () => {
  const resolve = (capabilityId: string, agentId = "", hash = "") =>
    platform.discovery.resolveCapability({ capabilityId, agentId, hash });

  it.each<[string, string, string, string]>([
    ["an id that one agent offers", "summarize", "", "alpha"],
    ["an agent and its capability", "beta/sentiment", "", "beta"],
    ["an id beside an agent", "sentiment", "alpha", "alpha"],
    ["both, of one agent", "alpha/sentiment", "alpha", "alpha"],
  ])("finds %s", async (_, capabilityId, agentId, owner) => {
    const answer = await resolve(capabilityId, agentId);
    const principal = owner === "alpha" ? ALICE : BOB;
    expect(answer).toMatchObject({ agentId: owner, agentPrincipal: principal, hashMatches: true });
    expect(answer.capability?.id).toBe(capabilityId.replace(/^.*\//, ""));
    expect(answer.capability?.inputSchema?.length).toBeGreaterThan(0);
  });

  it.each<[string, string, boolean]>([
    ["8 digits", "f53655e9", true],
    ["16 digits", "f53655e974b05aa5", true],
    ["fewer than 8", "f53655e", false],
    ["another version", "0123abcd", false],
    ["a malformed hash", "e5f6g7h8", false],
  ])("compares a hash: %s", async (_, hash, matches) => {
    const answer = await resolve("sentiment", "alpha", hash);
    expect(answer.hashMatches).toBe(matches);
    expect(asJson(answer.capability)).toEqual(asJson({ ...sentiment, h: "f53655e9" }));
  });

  it("marks a cached version as old and returns the current one", async () => {
    const changed = { ...sentiment, outputSchema: json({ type: "string" }), examples: [] };
    await platform.agents.publishCapabilities(
      { requestId: "change", agentId: "alpha", capabilities: [changed] },
      as(ALICE),
    );
    const answer = await resolve("sentiment", "alpha", "f53655e9");
    expect(answer.hashMatches).toBe(false);
    expect(asJson(answer.capability)).toEqual(asJson({ ...changed, h: answer.capability?.h ?? "" }));
    expect((await resolve("sentiment", "alpha", answer.capability?.h)).hashMatches).toBe(true);
  });

  it("refuses an id that several live agents offer, and lists them", async () => {
    expect(await refusal(resolve("sentiment"))).toMatchObject({
      reason: "CAPABILITY_AMBIGUOUS",
      metadata: { capability: "sentiment", candidates: "alpha/sentiment,beta/sentiment" },
    });
    platform.clock.advance(1_000);
    expect(await resolve("sentiment")).toMatchObject({ agentId: "alpha" });
  });

  it.each<[string, [string, string], Record<string, unknown>]>([
    [
      "an id that no agent offers",
      ["nothing", ""],
      { reason: "CAPABILITY_NOT_FOUND", metadata: { capability: "nothing" } },
    ],
    ["an id of a removed agent", ["vanish", ""], { reason: "CAPABILITY_NOT_FOUND" }],
    [
      "an id that the agent does not offer",
      ["alpha/translate", ""],
      { reason: "CAPABILITY_NOT_FOUND", metadata: { capability: "translate", agent: "alpha" } },
    ],
    [
      "an unknown agent",
      ["nobody/sentiment", ""],
      { reason: "AGENT_NOT_FOUND", metadata: { agent: "nobody" } },
    ],
    ["a removed agent", ["sentiment", "gone"], { reason: "AGENT_NOT_FOUND" }],
    ["two agents", ["alpha/sentiment", "beta"], { reason: "INVALID_REQUEST", fields: ["agent_id"] }],
    ["half a name", ["alpha/", ""], { reason: "INVALID_REQUEST", fields: ["capability_id"] }],
    ["the other half", ["/sentiment", ""], { reason: "INVALID_REQUEST", fields: ["capability_id"] }],
    ["no name", ["", ""], { reason: "INVALID_REQUEST", fields: ["capability_id"] }],
  ])("refuses %s", async (_, [capabilityId, agentId], expected) => {
    expect(await refusal(resolve(capabilityId, agentId))).toMatchObject(expected);
  });
});
