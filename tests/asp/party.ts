import { writeFileSync } from "node:fs";
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
  ExportTranscriptResponseSchema,
  SessionService,
} from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { type Agent, ALPHA, BETA, documentOf, GAMMA, overGrpc, overHttp, type Wire, write } from "./cast.ts";
import { invite, LINES } from "./scenario.ts";

/**
 * One party of the scenario, as a process that has no key but its own: started with its agent, the wire, the platform's
 * address and a file. It says its lines when those before were said, and writes the transcript as it was told it.
 */

/** A wire by which a party also finds its sessions, hears what is said, and gets the transcript. */
interface PartyWire extends Wire {
  /** The party's newest session. */
  newest(): Promise<string | undefined>;
  /** Places of the messages of a session, as they come, until it ends. */
  listen(sessionId: string): AsyncIterable<number>;
  transcript(sessionId: string): Promise<unknown>;
  close(): void;
}

function grpcParty(url: string, { uri: agentId }: Agent): PartyWire {
  const transport = createGrpcJsTransport(new URL(url).host);
  const sessions = createClient(SessionService, transport);
  return {
    ...overGrpc(sessions),
    newest: async () => (await sessions.listSessions({ agentId, pageSize: 1 })).sessions[0]?.sessionId,
    async *listen(sessionId) {
      for await (const { entry } of sessions.watchSession({ sessionId })) {
        if (entry !== undefined) yield entry.ordinal;
      }
    },
    transcript: async (sessionId) =>
      toJson(ExportTranscriptResponseSchema, await sessions.exportTranscript({ sessionId })),
    close: () => transport.close(),
  };
}

function httpParty(url: string, { uri }: Agent): PartyWire {
  const get = async (path: string) => documentOf(await fetch(`${url}/v1/asp${path}`));
  return {
    ...overHttp(url),
    async newest() {
      const { sessions } = await get(`/sessions?agent_id=${encodeURIComponent(uri)}&limit=1`);
      const [first] = sessions as JsonObject[];
      return first?.sessionId as string | undefined;
    },
    async *listen(sessionId) {
      const headers = { accept: "text/event-stream" };
      const { body } = await fetch(`${url}/v1/asp/sessions/${sessionId}/messages`, { headers });
      if (body === null) throw new Error("no events");
      let text = "";
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        const events = text.split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) {
          if (event.includes("event: message")) yield Number(/^id: (\d+)$/m.exec(event)?.[1]);
        }
      }
    },
    transcript: (sessionId) => get(`/sessions/${sessionId}/transcript`),
    close: () => {},
  };
}

/** Waits to be invited, or brought in. */
async function invited(wire: PartyWire): Promise<string> {
  for (;;) {
    const sessionId = await wire.newest();
    if (sessionId !== undefined) return sessionId;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const [uri, by, url = "", file = ""] = process.argv.slice(2);
const me = [ALPHA, BETA, GAMMA].find((one) => one.uri === uri);
if (me === undefined) throw new Error(`nobody is ${uri}`);
const wire = by === "grpc" ? grpcParty(url, me) : httpParty(url, me);
const sessionId = me === ALPHA ? (await invite(wire)).sessionId : await invited(wire);
for await (const ordinal of wire.listen(sessionId)) {
  const [who, performative, body, , recipient] = LINES[ordinal - 1] ?? [];
  if (who !== me || performative === undefined || body === undefined) continue;
  await wire.append(write(me, performative, body, await wire.get(sessionId), recipient));
}
writeFileSync(file, JSON.stringify(await wire.transcript(sessionId)));
wire.close();
