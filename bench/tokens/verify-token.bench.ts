import { encodeBase64Url, fromTimestamp } from "@depute/core";
import {
  attenuateToken,
  createProof,
  type Keypair,
  keypairFromSeed,
  parseToken,
  RevocationSet,
  requestSession,
  serialiseToken,
  VerifiedPrefixes,
  verifyToken,
} from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { serve } from "./serve.ts";

/**
 * Measures the CPU time of VerifyToken over gRPC, with the service in a separate process. It is compared with a nearly
 * empty call, and with verification in the same process. Each token has two attenuations with known signatures. Each
 * call has either a separate proof or a code in a holder session.
 */

const TOKENS = 64;
const CALLS = amount(4000);
const WARM_UP = amount(10_000);
const ROUNDS = amount(5);
const IN_FLIGHT = 64;
/**
 * The goal for the CPU time of one VerifyToken: at most the time of an empty call, plus TIMES times the time of a
 * verification in the same process, plus PLUS_US microseconds.
 */
const TIMES = 1.3;
const PLUS_US = 20;

const AUDIENCE = "https://depute.example";
const CALL = { htm: "POST", htu: `${AUDIENCE}/depute.tasks.v1.TaskService/CreateTask` };
const OPEN = { htm: "POST", htu: `${AUDIENCE}/depute.tokens.v1.HolderSessionService/OpenHolderSession` };
const [alice, bob, carol] = [2, 3, 4].map((n) => keypairFromSeed(engine, new Uint8Array(32).fill(n))) as [
  Keypair,
  Keypair,
  Keypair,
];

interface Presented {
  readonly text: string;
  readonly jwt: string;
  readonly resource: string;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const served = await serve();
  const { principal: root } = await served.tokens.getIssuer({});
  const texts: string[] = [];
  for (let n = 0; n < TOKENS; n++) texts.push(await tokenOf(n));

  const proofs = (count: number): Presented[] =>
    Array.from({ length: count }, (_, i) => {
      const text = texts[i % TOKENS] as string;
      return { text, jwt: createProof(engine, carol, { ...CALL, token: text }), resource: resourceOf(i) };
    });
  const sessions = await Promise.all(texts.slice(0, 32).map(openSession));
  const calls = (count: number): Presented[] =>
    Array.from({ length: count }, (_, i) => {
      const text = texts[i % 32] as string;
      return { text, jwt: sessions[i % 32]?.prove(CALL) ?? "", resource: resourceOf(i % 32) };
    });

  const empty = async () => void (await served.tokens.getIssuer({}));
  const verify = async ({ text, jwt, resource }: Presented) => {
    const { result } = await served.tokens.verifyToken({
      token: { token: text, format: "delegateos-sjt-v1" },
      proof: { jwt, method: CALL.htm, target: CALL.htu },
      requested: { namespace: "docs", action: "read", resource },
    });
    if (result.case !== "scope") throw new Error(`denied: ${result.value?.type} ${result.value?.detail}`);
  };

  let measured: Promise<{ empty: number; proved: number; inSession: number; inProcess: number }> | undefined;
  const figures = () => {
    measured ??= measure();
    return measured;
  };
  async function measure() {
    await serverCpu(Array.from({ length: WARM_UP }), empty);
    await serverCpu(proofs(WARM_UP), verify);
    await serverCpu(calls(WARM_UP), verify);
    inProcess(proofs(WARM_UP), root);
    const rounds: { empty: number; proved: number; inSession: number; inProcess: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      rounds.push({
        empty: await serverCpu(Array.from({ length: CALLS }), empty),
        proved: await serverCpu(proofs(CALLS), verify),
        inSession: await serverCpu(calls(CALLS), verify),
        inProcess: inProcess(proofs(CALLS), root),
      });
    }
    const median = (medianOf: keyof (typeof rounds)[number]) =>
      rounds.map((round) => round[medianOf]).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
    return {
      empty: median("empty"),
      proved: median("proved"),
      inSession: median("inSession"),
      inProcess: median("inProcess"),
    };
  }

  const unit = "us of CPU a call";
  const budget = async () => {
    const { inProcess: once } = await figures();
    return TIMES * once + PLUS_US;
  };
  return [
    {
      name: "VerifyToken over gRPC, 2 attenuations, signatures known",
      figures: [
        { name: "GetIssuer, next to an empty call", unit, measure: async () => (await figures()).empty },
        {
          name: "verification with a proof, in process",
          unit,
          measure: async () => (await figures()).inProcess,
        },
        { name: "VerifyToken with a proof", unit, measure: async () => (await figures()).proved },
        { name: "VerifyToken in a session", unit, measure: async () => (await figures()).inSession },
        {
          name: `added by a proof, to what it may add (${TIMES} times the verification and ${PLUS_US} us)`,
          unit: "times",
          measure: async () => {
            const { proved, empty: nothing } = await figures();
            return (proved - nothing) / (await budget());
          },
          atMost: 1,
        },
        {
          name: "added in a session, to what a proof may add",
          unit: "times",
          measure: async () => {
            const { inSession, empty: nothing } = await figures();
            return (inSession - nothing) / (await budget());
          },
          atMost: 1,
        },
      ],
      close: () => served.close(),
    },
  ];

  /** Returns the service's CPU time of one call in microseconds, with several calls always in flight. */
  async function serverCpu<T>(inputs: readonly T[], call: (input: T) => Promise<void>): Promise<number> {
    const before = await served.cpu();
    const waiting = inputs.values();
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async () => {
        for (const input of waiting) await call(input);
      }),
    );
    return ((await served.cpu()) - before) / inputs.length;
  }

  async function tokenOf(n: number): Promise<string> {
    const { token } = await served.tokens.mintToken({
      requestId: `r${n}`,
      delegatee: alice.principal.id,
      capabilities: [
        { namespace: "docs", action: "read", resource: `/project-${n}/**` },
        { namespace: "docs", action: "write", resource: `/project-${n}/drafts/*` },
        { namespace: "web", action: "fetch", resource: "https://example.com/**" },
      ],
      contractId: "ct_a1b2c3d4e5f6",
      maxChainDepth: 8,
      maxBudgetMicrocents: 1_000_000n,
    });
    const parsed = parseToken(token?.token);
    if (!parsed.ok) throw new Error(parsed.denial.type);
    const allowed = (resource: string) => [
      { namespace: "docs", action: "read", resource },
      { namespace: "web", action: "fetch", resource: "https://example.com/**" },
    ];
    const narrowed = { delegatee: bob.principal.id, allowedCapabilities: allowed(`/project-${n}/part-0/**`) };
    const second = attenuateToken(engine, parsed.token, narrowed, alice);
    const more = {
      delegatee: carol.principal.id,
      allowedCapabilities: allowed(`/project-${n}/part-0/part-1/**`),
    };
    return serialiseToken(attenuateToken(engine, second, more, bob)).token;
  }

  async function openSession(text: string) {
    const request = requestSession(engine, carol, { ...OPEN, audience: AUDIENCE, token: text });
    const { result } = await served.sessions.openHolderSession({
      ...{ proof: request.proof, audience: AUDIENCE, token: { token: text, format: "delegateos-sjt-v1" } },
    });
    if (result.case !== "grant") throw new Error(`denied: ${result.value?.type}`);
    const { id: name, signer, expireTime, verifierKey, signature } = result.value;
    const grant = {
      ...{ id: name, signer, expiresAt: expireTime === undefined ? 0 : fromTimestamp(expireTime) },
      verifierKey: encodeBase64Url(verifierKey),
      signature: encodeBase64Url(signature),
    };
    return request.accept(grant, root);
  }
}

const verified = new VerifiedPrefixes();
const revocations = new RevocationSet();

/**
 * Returns the microseconds of CPU time that one verification takes in this process. As for the service, all threads
 * count.
 */
function inProcess(presented: readonly Presented[], root: string): number {
  const context = { trustedRoots: new Set([root]), revocations, spentMicrocents: 0 };
  // Each input is a new text, as if it had arrived over the network.
  const inputs = presented.map(
    ({ text, jwt, resource }) => [Buffer.from(text), Buffer.from(jwt), resource] as const,
  );
  const before = process.cpuUsage();
  for (const [text, jwt, resource] of inputs) {
    const holder = { ...CALL, proof: jwt.toString("latin1") };
    const request = { namespace: "docs", action: "read", resource };
    const now = Date.now();
    const result = verifyToken(
      engine,
      text.toString("latin1"),
      { ...context, now, holder, request },
      { verified },
    );
    if (!result.ok) throw new Error(`${result.denial.type} ${result.denial.detail}`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / inputs.length;
}

function resourceOf(n: number): string {
  return `/project-${n % TOKENS}/part-0/part-1/report.txt`;
}
