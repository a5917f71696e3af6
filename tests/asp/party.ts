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
 * This program is one party of the scenario, with only its own key. Arguments: agent, wire, the platform's address,
 * and a file. The party sends each of its lines when the previous lines have arrived. At the end it writes the
 * received transcript to the file.
 */

/** A wire on which a party can also list sessions, watch a session, and get its transcript. */
interface PartyWire extends Wire {
  /** The party's newest session. */
  newest(): Promise<string | undefined>;
  /** Yields the positions of a session's messages as they arrive, until the session ends. */
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

/**
 * Polls until the party is in a session, because it was invited or a message delegated to it. Returns the session's
 * id.
 */
async function invited(wire: PartyWire): Promise<string> {
  for (;;) {
    const sessionId = await wire.newest();
    if (sessionId !== undefined) return sessionId;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const [uri, by, url = "", file = ""] = process.argv.slice(2);
const me = [ALPHA, BETA, GAMMA].find((one) => one.uri === uri);
if (me === undefined) throw new Error(`no agent has the URI ${uri}`);
const wire = by === "grpc" ? grpcParty(url, me) : httpParty(url, me);
const sessionId = me === ALPHA ? (await invite(wire)).sessionId : await invited(wire);
for await (const ordinal of wire.listen(sessionId)) {
  const [sender, performative, body, , recipient] = LINES[ordinal - 1] ?? [];
  if (sender !== me || performative === undefined || body === undefined) continue;
  await wire.append(write(me, performative, body, await wire.get(sessionId), recipient));
}
writeFileSync(file, JSON.stringify(await wire.transcript(sessionId)));
wire.close();
