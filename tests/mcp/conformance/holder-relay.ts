import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { type Grant, provedArguments } from "../holder.ts";

/**
 * Relays requests to one address, and adds a token with a new proof to each request. The conformance suite
 * itself cannot add tokens.
 */
export async function holderRelay(
  target: string,
  { token, keypair }: Grant,
): Promise<{ url: string; stop(): void }> {
  const { host } = new URL(target);
  const relay = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const claims = { htm: incoming.method ?? "GET", htu: target, token };
    const dpop = createProof(engine, keypair, {
      ...claims,
      ...(body.length === 0 ? {} : { arguments: provedArguments(JSON.parse(body.toString())) }),
    });
    // A foreign host or origin must reach the platform, because the test expects the platform to refuse it.
    const own = `127.0.0.1:${portOf()}`;
    const isOwnHost = incoming.headers.host === own;
    const headers = { ...incoming.headers, authorization: `DPoP ${token}`, dpop };
    if (headers.origin === `http://${own}`) headers.origin = `http://${host}`;
    const onward = request(target, {
      method: incoming.method,
      headers: { ...headers, host: isOwnHost ? host : incoming.headers.host },
    });
    onward.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.on("error", () => outgoing.destroy()).pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.once("close", () => onward.destroy());
    onward.end(body);
  });
  const portOf = () => (relay.address() as AddressInfo).port;
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${portOf()}/mcp`,
    stop() {
      relay.closeAllConnections();
      relay.close();
    },
  };
}
