import { append, exportTranscript, idleSession, verifyTranscript } from "@depute/asp";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { nativeEngine as engine } from "@depute/dct/native";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { ALPHA, BETA, Chain } from "./parties.ts";
import { type Platform, startPlatform } from "./platform.ts";

/**
 * Measures ASP sessions over gRPC, with the platform in another process. Throughput: each of 50 sessions
 * appends durable messages with checked signatures, one after the other. Latency: the time from the append of a
 * message to its arrival at each of 10 watchers, with 4 active sessions. The benchmark also measures the
 * offline verification of a transcript.
 */

const SESSIONS = amount(50);
const MESSAGES = amount(80);
const WARM_UP = 10;
const ACTIVE = 4;
const WATCHERS = 10;
const WATCHED = amount(150);
/**
 * Number of warm-up messages in each watched session, so that both processes have compiled their hot code before the
 * measurement.
 */
const WATCHED_WARM_UP = amount(100);
/** Milliseconds between the messages of one watched session. */
const PACE_MS = 20;
const TRANSCRIPT = amount(10_000);

export default function benchmarks(): Benchmark[] {
  let platform: Promise<Platform> | undefined;
  const started = () => {
    platform ??= startPlatform();
    return platform;
  };
  let delays: Promise<number[]> | undefined;
  const delay = async (part: number) => {
    delays ??= started().then(watchDelays);
    const sorted = await delays;
    return sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
  };
  return [
    {
      name: `appending to ${SESSIONS} sessions, durably`,
      figures: [
        {
          name: "messages",
          unit: "a second",
          measure: async () => appendRate(await started()),
          atLeast: 1000,
        },
      ],
    },
    {
      name: `from the append to ${WATCHERS} watchers, ${ACTIVE} sessions active`,
      figures: [
        { name: "median", unit: "ms", measure: () => delay(0.5) },
        { name: "p99", unit: "ms", measure: () => delay(0.99), atMost: 20 },
      ],
      close: async () => (await platform)?.close(),
    },
    {
      name: `a transcript of ${TRANSCRIPT} messages`,
      figures: [{ name: "verified in", unit: "ms", measure: verifyMs, atMost: 2000 }],
    },
  ];
}

async function open({ sessions }: Platform, chain: Chain): Promise<void> {
  const [invitation, ...rest] = chain.opening();
  await sessions.createSession({ invitation: invitation as Envelope });
  for (const envelope of rest) await sessions.appendMessage({ envelope });
}

async function appendRate(platform: Platform): Promise<number> {
  const chains = Array.from({ length: SESSIONS }, () => new Chain(platform.score));
  await Promise.all(chains.map((chain) => open(platform, chain)));
  const say = (messages: Envelope[][]) =>
    Promise.all(
      messages.map(async (message) => {
        for (const envelope of message) await platform.sessions.appendMessage({ envelope });
      }),
    );
  await say(chains.map((chain) => chain.talk(WARM_UP)));
  // The messages are signed before the measurement, so that the senders' work is not measured.
  const messages = chains.map((chain) => chain.talk(MESSAGES));
  const start = performance.now();
  await say(messages);
  return (SESSIONS * MESSAGES * 1000) / (performance.now() - start);
}

/** Returns the milliseconds from each append to its arrival at each watcher, in ascending order. */
async function watchDelays(platform: Platform): Promise<number[]> {
  const { sessions } = platform;
  const delays: number[] = [];
  await Promise.all(
    Array.from({ length: ACTIVE }, async () => {
      const chain = new Chain(platform.score);
      await open(platform, chain);
      const messages = chain.talk(WATCHED_WARM_UP + WATCHED);
      const sent = new Map<string, number>();
      const stop = new AbortController();
      const watchers = Array.from({ length: WATCHERS }, async () => {
        let seen = 0;
        const request = { sessionId: chain.sessionId, afterSequence: 4n };
        for await (const { entry } of sessions.watchSession(request, { signal: stop.signal })) {
          const at = sent.get(entry?.envelope?.messageId ?? "");
          if (at !== undefined) delays.push(performance.now() - at);
          if (++seen === messages.length) return;
        }
      });
      await new Promise((resolve) => setTimeout(resolve, 500));
      for (const [index, envelope] of messages.entries()) {
        if (index >= WATCHED_WARM_UP) sent.set(envelope.messageId, performance.now());
        await sessions.appendMessage({ envelope });
        await new Promise((resolve) => setTimeout(resolve, PACE_MS));
      }
      await Promise.all(watchers);
      stop.abort();
    }),
  );
  return delays.sort((a, b) => a - b);
}

function verifyMs(): number {
  const chain = new Chain(50);
  const envelopes = [...chain.opening(), ...chain.talk(TRANSCRIPT - 4)];
  const receiveMs = Date.now();
  let session = idleSession(chain.sessionId, receiveMs);
  const keys = new Map([ALPHA, BETA].map(({ uri, key }) => [uri, { key }]));
  const agent = (uri: string) => keys.get(uri);
  for (const envelope of envelopes) {
    const result = append(session, envelope, { nowMs: receiveMs, engine, agent, hasMessage: () => false });
    if (!result.ok) throw new Error(result.refusal.detail);
    session = result.session;
  }
  const transcript = exportTranscript(
    session,
    envelopes.map((envelope) => ({ envelope, receiveMs })),
    receiveMs,
  );
  const start = performance.now();
  const verdict = verifyTranscript(transcript, { engine });
  if (!verdict.ok) throw new Error(verdict.detail);
  return performance.now() - start;
}
