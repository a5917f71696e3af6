import { holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { describe, expect, test } from "vitest";
import { call, error, introduce, result } from "../gateway/platform.ts";
import { CONTEXT, Scene, work } from "./scene.ts";

const scene = new Scene();
const { nekte } = scene;

describe("nekte.context", () => {
  const DATA = { user_preferences: { lang: "en", tone: "formal" } };
  const share = (more: object = {}, path?: string) =>
    nekte("nekte.context", { envelope: { data: DATA, ...CONTEXT, ...more } }, path);
  const contextCall = (action: string, id: string, more: object = {}) =>
    nekte("nekte.context", { action, envelope: { id, ...more } });

  test.each([true, false])("shares, reads and revokes a context (persist: %s)", async (persist) => {
    const permissions = { ...CONTEXT.permissions, persist };
    const { id, ...rest } = await result(share({ permissions }));
    expect(rest).toEqual({ status: "stored" });
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await result(contextCall("request", id))).toEqual({ id, data: DATA, permissions, ttl_s: 3600 });
    expect(await result(contextCall("revoke", id))).toEqual({ id, status: "revoked" });
    expect(await error(contextCall("request", id))).toMatchObject({
      code: -32004,
      message: "CONTEXT_EXPIRED",
    });
  });

  test("keeps the caller's own id, also one that looks like the server's", async () => {
    for (const id of ["own", crypto.randomUUID()]) {
      expect(await result(share({ id }))).toEqual({ id, status: "stored" });
      expect(await result(share({ id }))).toEqual({ id, status: "stored" });
      expect(await result(contextCall("request", id))).toMatchObject({ id, data: DATA });
      expect(await error(share({ id, ttl_s: 1 }))).toMatchObject({
        code: -32602,
        data: { reason: "CONTEXT_ID_TAKEN" },
      });
    }
  });

  test("is valid for the capabilities of its scope", async () => {
    const { id } = await result(share({ scope: ["sentiment", "summarize"] }));
    expect(await result(contextCall("request", id, { scope: ["sentiment"] }))).toMatchObject({ data: DATA });
    for (const more of [{}, { scope: ["shared"] }]) {
      expect(await error(contextCall("request", id, more))).toMatchObject({ code: -32005 });
    }
  });

  test.each(["request", "revoke"])("%s of an unknown context is refused", async (action) => {
    for (const id of ["never", crypto.randomUUID()]) {
      expect(await result(contextCall(action, id))).toEqual({ id, status: "not_found" });
    }
    expect(await error(nekte("nekte.context", { action, envelope: {} }))).toMatchObject({ code: -32602 });
  });

  test("belongs to the caller and the addressed agent", async () => {
    const holder = () => ({ engine, keypair: generateKeypair(engine), publicUrl: scene.platform.url });
    const [alice, eve, bob] = [holder(), holder(), holder()];
    await introduce(scene.platform, "reader", [], bob.keypair.principal.id);
    const ask = (by: ReturnType<typeof holder>, params: object, path = "/nekte") =>
      result(scene.platform.post(path, call("nekte.context", params), holderHeaders(by, path)));
    const { id } = await ask(alice, { envelope: { data: DATA, ...CONTEXT } }, "/nekte/reader");
    const request = { action: "request", envelope: { id } };
    expect(await ask(bob, request)).toMatchObject({ data: DATA });
    expect(await ask(eve, request)).toEqual({ id, status: "not_found" });
    const context = { ...CONTEXT, id, data: null, compression: "reference" };
    const path = "/nekte/nlp-worker";
    const post = (by: ReturnType<typeof holder>) =>
      scene.platform.post(path, call("nekte.delegate", { ...work(), context }), {
        accept: "application/json, text/event-stream;q=0",
        ...holderHeaders(by, path),
      });
    expect((await result(post(alice))).out.compact).toEqual({ got: DATA });
    // Bob may read the context but not forward it.
    expect(await error(post(bob))).toMatchObject({ code: -32005 });
    expect(await error(post(eve))).toMatchObject({ data: { reason: "CONTEXT_NOT_FOUND" } });
  });

  test.each([
    ["no envelope", {}, "/envelope"],
    ["another action", { action: "steal", envelope: { data: 1, ...CONTEXT } }, "/action"],
    ["no time", { envelope: { data: 1, permissions: CONTEXT.permissions } }, "/envelope/ttl_s"],
    ["too long a time", { envelope: { data: 1, ...CONTEXT, ttl_s: 2_592_001 } }, "/envelope/ttl_s"],
  ])("%s is refused", async (_, params, path) => {
    const refused = await error(nekte("nekte.context", params));
    expect(refused).toMatchObject({ code: -32602, data: { violations: [{ path }] } });
  });
});
