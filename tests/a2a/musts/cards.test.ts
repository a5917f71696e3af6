import { createPublicKey, verify } from "node:crypto";
import { AgentCardForm } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import canonicalize from "canonicalize";
import { describe, expect } from "vitest";
import type { Json } from "../../gateway/platform.ts";
import { BINDINGS, Scene } from "../scene.ts";
import { must, VERSION } from "./must.ts";

describe("cards", () => {
  const scene = new Scene();
  const readCard = async (): Promise<Json> =>
    (await fetch(`${scene.platform.url}/a2a/worker/.well-known/agent-card.json`)).json();

  must([1], "the well-known address of an agent has its card", async () => {
    expect(await readCard()).toMatchObject({ name: "worker", skills: [{ id: "sum" }] });
  });

  must([2, 3], "the card names every binding, and each address answers in its binding", async () => {
    const { supportedInterfaces } = await readCard();
    const bindings = supportedInterfaces.map(({ protocolBinding }: Json) => protocolBinding);
    expect(bindings.toSorted()).toEqual(BINDINGS.toSorted());
    const [rpc, http] = supportedInterfaces as { url: string }[];
    const headers = { ...VERSION, "content-type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} });
    const answered = await fetch(rpc?.url ?? "", { method: "POST", headers, body });
    expect(await answered.json()).toMatchObject({ jsonrpc: "2.0", result: { tasks: [] } });
    const listed = await fetch(`${http?.url}/tasks`, { headers });
    expect(await listed.json()).toMatchObject({ tasks: [] });
  });

  must(
    [6, 7, 8, 9, 10, 11, 12],
    "a signature covers the canonical card without signatures and without absent members",
    async () => {
      const { signatures, ...card } = await readCard();
      const [{ protected: header, signature }] = signatures;
      const { alg, kid } = JSON.parse(Buffer.from(header, "base64url").toString());
      expect([alg, typeof kid]).toEqual(["EdDSA", "string"]);
      const { signingKey } = await scene.platform.clients.agents.getAgentCard({
        agentId: "worker",
        form: AgentCardForm.A2A_1_0,
      });
      expect(signingKey?.kid).toBe(kid);
      const jwk = { kty: "OKP", crv: "Ed25519", x: signingKey?.x ?? "" };
      const key = createPublicKey({ key: jwk, format: "jwk" });
      const signed = (document: object) =>
        Buffer.from(`${header}.${Buffer.from(canonicalize(document) ?? "").toString("base64url")}`);
      const isValid = (document: object) =>
        verify(null, signed(document), key, Buffer.from(signature, "base64url"));
      expect(isValid(card)).toBe(true);
      expect(isValid({ ...card, signatures })).toBe(false);
      expect(isValid({ ...card, documentationUrl: "" })).toBe(false);
      // Members that are false by choice are signed; empty lists and absent members are not in the document.
      expect(card.capabilities.pushNotifications).toBe(false);
      const empty = Object.entries(card).filter(([, value]) => Array.isArray(value) && value.length === 0);
      expect(empty).toEqual([]);
      for (const required of ["name", "description", "version", "supportedInterfaces", "skills"]) {
        expect(card).toHaveProperty(required);
      }
    },
  );

  must([69], "streaming is declared, so both streaming operations are served", async () => {
    expect((await readCard()).capabilities.streaming).toBe(true);
  });

  must([81, 82], "no extension is required, and the URI of each contains its version", async () => {
    const { extensions } = (await readCard()).capabilities;
    expect(extensions.length).toBeGreaterThan(0);
    for (const { uri, required } of extensions) {
      expect(required ?? false).toBe(false);
      expect(uri).toMatch(/\/v\d+$/);
    }
  });
});
