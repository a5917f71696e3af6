import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMethod, getOption } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { holderHeaders } from "@depute/client";
import { Role, roles } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { methods, nameOf } from "../contracts/contract-files.ts";
import { type Json, startPlatform, type TestPlatform } from "../gateway/platform.ts";

/** The roles that callers may have, by their name in the credentials file. */
const NAMES = {
  user: Role.USER,
  agent: Role.AGENT,
  orchestrator: Role.ORCHESTRATOR,
  reviewer: Role.REVIEWER,
  spender: Role.SPENDER,
  minter: Role.MINTER,
  auditor: Role.AUDITOR,
  operator: Role.OPERATOR,
  platform: Role.PLATFORM,
} as const;
type Name = keyof typeof NAMES;

const DEFAULT: readonly Name[] = ["user", "agent", "orchestrator", "reviewer", "spender"];

/**
 * The callers of the matrix by name; the name is also the secret. `roles` are those that the credentials file
 * grants; without `roles`, the file names none. `has` are the roles that the caller has.
 */
const CALLERS: Readonly<Record<string, { readonly roles?: readonly Name[]; readonly has: readonly Name[] }>> =
  {
    ...Object.fromEntries(
      (Object.keys(NAMES) as Name[]).map((name) => [name, { roles: [name], has: [name] }]),
    ),
    "minter-and-auditor": { roles: ["minter", "auditor"], has: ["minter", "auditor"] },
    "without-any-role": { roles: [], has: [] },
    "without-a-grant": { has: DEFAULT },
    "named-by-settings": { has: [...DEFAULT, "minter", "auditor", "operator"] },
  };

/**
 * Milliseconds after which an open stream without an error counts as admitted. The limit is longer where the contract
 * refuses the caller, because a busy machine may answer late.
 */
const STREAM_MS = { admitted: 400, refused: 20_000 };
const AT_ONCE = 24;

const auditorKey = generateKeypair(engine);
const plainKey = generateKeypair(engine);

let folder: string;
let platform: TestPlatform;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-role-matrix-"));
  const file = join(folder, "credentials.json");
  const entries = Object.entries(CALLERS).map(([principal, { roles: granted }]) => ({
    principal,
    sha256: createHash("sha256").update(principal).digest("hex"),
    ...(granted && { roles: granted }),
  }));
  writeFileSync(
    file,
    JSON.stringify([...entries, { principal: auditorKey.principal.id, roles: ["auditor"] }]),
  );
  const named = "named-by-settings";
  const settings = ["--minters", named, "--auditors", named, "--asp-authority-operators", named];
  platform = await startPlatform(["--auth", "required", "--credentials-file", file, ...settings]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Whether the option of a method admits a caller with these roles. */
function admits(method: DescMethod, has: readonly Name[]): boolean {
  const option = getOption(method, roles);
  return option.includes(Role.ANY) || has.some((name) => option.includes(NAMES[name]));
}

/** Settings count at the service that has them: those of the tokens service do not open methods of others. */
function admitsByName(name: string, method: DescMethod): boolean {
  const { has } = CALLERS[name] ?? { has: [] };
  if (name !== "named-by-settings") return admits(method, has);
  const [, service] = method.parent.typeName.split(".");
  const more: Readonly<Record<string, readonly Name[]>> = {
    tokens: ["minter", "auditor"],
    registry: ["operator"],
  };
  return admits(method, [...DEFAULT, ...(more[service ?? ""] ?? [])]);
}

/**
 * `admitted`, or `refused:` and the roles that the refusal names. Every other error comes later than the check of
 * the roles, so the caller was admitted.
 */
type Verdict = string;

function verdictOf(code: Code, metadata: Readonly<Record<string, string>> | undefined): Verdict {
  if (code !== Code.PermissionDenied || metadata?.roles === undefined) return "admitted";
  return `refused: ${metadata.roles}`;
}

function expectedOf(method: DescMethod, isAdmitted: boolean): Verdict {
  if (isAdmitted) return "admitted";
  const option = getOption(method, roles);
  const names = option.flatMap((role) =>
    (Object.keys(NAMES) as Name[]).filter((name) => NAMES[name] === role),
  );
  return `refused: ${names.join(",")}`;
}

interface GrpcCall {
  readonly transport: Transport;
  readonly headers: Record<string, string>;
  /** Whether the contract admits the caller. */
  readonly isAdmitted: boolean;
}

/** Calls a method over gRPC with an empty request. */
async function overGrpc(method: DescMethod, call: GrpcCall): Promise<Verdict> {
  const error = await errorOverGrpc(method, call);
  return error === undefined ? "admitted" : verdictOf(error.code, fromConnectError(error).metadata);
}

async function errorOverGrpc(
  method: DescMethod,
  { transport, headers, isAdmitted }: GrpcCall,
): Promise<ConnectError | undefined> {
  try {
    if (method.methodKind === "unary") {
      await transport.unary(method as never, undefined, 10_000, headers, create(method.input) as never);
      return undefined;
    }
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), isAdmitted ? STREAM_MS.admitted : STREAM_MS.refused);
    async function* one(): AsyncIterable<never> {
      yield create(method.input) as never;
    }
    try {
      const answer = await transport.stream(method as never, ended.signal, undefined, headers, one());
      for await (const _ of answer.message) break;
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  } catch (error) {
    return ConnectError.from(error);
  }
}

/** Calls a method by Connect with JSON over HTTP/1.1. */
async function overJson(method: DescMethod, headers: Record<string, string>): Promise<Verdict> {
  const answer = await platform.post(`/${nameOf(method)}`, {}, headers);
  if (answer.status !== 403) return "admitted";
  const { details = [] } = (await answer.json()) as { details?: { debug?: Json }[] };
  const metadata = details.map(({ debug }) => debug?.metadata).find((each) => each?.roles !== undefined);
  return metadata === undefined ? "admitted" : `refused: ${metadata.roles}`;
}

/** Runs `work` for each method, several at once, and returns the results by the methods' names. */
async function forEach(
  list: readonly DescMethod[],
  work: (method: DescMethod) => Promise<Verdict>,
): Promise<Record<string, Verdict>> {
  const results: Record<string, Verdict> = {};
  const rest = [...list];
  const lane = async () => {
    for (let method = rest.pop(); method !== undefined; method = rest.pop())
      results[nameOf(method)] = await work(method);
  };
  await Promise.all([...Array(AT_ONCE)].map(lane));
  return results;
}

const bearer = (name: string) => ({ authorization: `Bearer ${name}` });
const unary = methods.filter(({ methodKind }) => methodKind === "unary");

describe.each(Object.keys(CALLERS))("a caller %s", (name) => {
  const expected = (list: readonly DescMethod[]) =>
    Object.fromEntries(list.map((each) => [nameOf(each), expectedOf(each, admitsByName(name, each))]));

  test("reaches the methods of its roles over gRPC, and no other one", async () => {
    const { transport } = platform;
    const seen = await forEach(methods, (method) =>
      overGrpc(method, { transport, headers: bearer(name), isAdmitted: admitsByName(name, method) }),
    );
    expect(seen).toEqual(expected(methods));
  }, 60_000);

  test("reaches the same methods by JSON over HTTP", async () => {
    const seen = await forEach(unary, (method) => overJson(method, bearer(name)));
    expect(seen).toEqual(expected(unary));
  }, 60_000);
});

describe("a holder proof", () => {
  const proof = (keypair: typeof plainKey, method: DescMethod) =>
    holderHeaders({ engine, keypair, publicUrl: platform.url }, `/${nameOf(method)}`);

  test.each([
    ["of a key with the role auditor", auditorKey, ["auditor"] as const],
    ["of a key without a grant", plainKey, DEFAULT],
  ])(
    "%s reaches no method of other roles",
    async (_, keypair, has) => {
      const wrong: string[] = [];
      await forEach(methods, async (method) => {
        const { transport } = platform;
        const headers = proof(keypair, method);
        const error = await errorOverGrpc(method, { transport, headers, isAdmitted: admits(method, has) });
        const verdict =
          error === undefined ? "admitted" : verdictOf(error.code, fromConnectError(error).metadata);
        const isRefused = verdict.startsWith("refused");
        if (admits(method, has)) {
          if (isRefused) wrong.push(`${nameOf(method)} ${verdict}`);
        } else if (
          !isRefused &&
          error?.code !== Code.InvalidArgument &&
          error?.code !== Code.Unauthenticated
        ) {
          // The check of the roles comes after those of the request and of the proof. So only the errors of these two
          // may precede it.
          wrong.push(`${nameOf(method)} ${error?.message ?? "answers"}`);
        }
        return verdict;
      });
      expect(wrong).toEqual([]);
    },
    60_000,
  );
});

test("a caller without credentials on an open loopback has every role", async () => {
  const open = await startPlatform();
  try {
    const seen = await forEach(methods, (method) =>
      overGrpc(method, { transport: open.transport, headers: {}, isAdmitted: true }),
    );
    expect(Object.values(seen).filter((verdict) => verdict !== "admitted")).toEqual([]);
  } finally {
    await open.stop();
  }
}, 60_000);

describe("the wires", () => {
  const nekte = { jsonrpc: "2.0", id: 1, method: "nekte.invoke", params: { cap: "x", in: {} } };
  const a2a = {
    ...{ jsonrpc: "2.0", id: 1, method: "ListTasks" },
    params: {},
  };

  test.each<[string, string, unknown, Record<string, string>]>([
    ["NEKTE", "/nekte/absent", nekte, {}],
    ["A2A", "/a2a/absent", a2a, { "a2a-version": "1.0" }],
    ["CAP", "/cap/inbox/x", undefined, {}],
  ])("%s refuses a caller without the role in the protocol's form", async (_, path, body, more) => {
    const headers = { ...bearer("auditor"), ...more };
    const answer =
      body === undefined
        ? await fetch(`${platform.url}${path}`, { headers })
        : await platform.post(path, body, headers);
    const text = await answer.text();
    expect([answer.status, text]).toEqual([expect.any(Number), expect.stringContaining("roles")]);
  });
});
