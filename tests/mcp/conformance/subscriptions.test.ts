import { createRevocation } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { call, result } from "../../gateway/platform.ts";
import { connect, type Grant, grant, holderFetch, refusal } from "../holder.ts";
import { grantAll, type StartedFixture, startBehindDepute } from "./behind-depute.ts";

const WATCHED = "test://watched-resource";
const OTHER = "test://static-text";

let started: StartedFixture;
beforeAll(async () => {
  started = await startBehindDepute();
}, 60_000);
afterAll(() => started.stop());

describe.each(["fixture", "legacy"])("subscriptions to resources, server %s", (server) => {
  /** Connects a client of an earlier revision that keeps the addresses of changed resources. */
  async function watching(holder?: Grant) {
    const owner = holder ?? (await grantAll(started.platform));
    const client = await connect(started.platform.mcp(server), "2025-11-25", holderFetch(owner));
    const changed: string[] = [];
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      changed.push(params.uri);
    });
    const change = (uri: string) => client.callTool({ name: "change_resource", arguments: { uri } });
    return { client, changed, change };
  }

  test("notify each client of the resources that it subscribed to", async () => {
    const [one, two] = [await watching(), await watching()];
    await one.client.subscribeResource({ uri: WATCHED });
    await two.client.subscribeResource({ uri: OTHER });
    await one.change(WATCHED);
    await one.change(OTHER);
    await vi.waitFor(() => expect(two.changed).toEqual([OTHER]));
    await vi.waitFor(() => expect(one.changed).toEqual([WATCHED]));
    await one.client.unsubscribeResource({ uri: WATCHED });
    await one.change(WATCHED);
    await one.change(OTHER);
    await vi.waitFor(() => expect(two.changed).toEqual([OTHER, OTHER]));
    expect(one.changed).toEqual([WATCHED]);
    for (const { client } of [one, two]) await client.close();
  });

  test("need the right to read the resource", async () => {
    const holder = await grant(started.platform, [
      ["compute", "execute", "fixture/**"],
      ["docs", "read", "test/static-text"],
    ]);
    const { client } = await watching(holder);
    await client.subscribeResource({ uri: OTHER });
    expect((await refusal(client.subscribeResource({ uri: WATCHED }))).code).toBe(-32001);
    await client.close();
  });

  test("end with the token", async () => {
    const holder = await grantAll(started.platform);
    const [revoked, other] = [await watching(holder), await watching()];
    for (const { client } of [revoked, other]) await client.subscribeResource({ uri: WATCHED });
    const revocation = createRevocation(engine, holder.revocationId, "block", holder.keypair);
    const params = { revocation, dct: holder.token };
    await result(started.platform.post("/delegateos", call("delegateos/revoke", params)));
    await other.change(WATCHED);
    await vi.waitFor(() => expect(other.changed).toEqual([WATCHED]));
    await other.change(WATCHED);
    await vi.waitFor(() => expect(other.changed).toEqual([WATCHED, WATCHED]));
    expect(revoked.changed).toEqual([]);
    await other.client.close();
  });
});

describe.each(["fixture", "legacy"])(
  "a stream of 2026-07-28 that listens to resources, server %s",
  (server) => {
    /** Connects a client whose stream collects the addresses of changed resources. */
    async function listening(uris: string[], holder?: Grant) {
      const owner = holder ?? (await grantAll(started.platform));
      const client = await connect(started.platform.mcp(server), "2026-07-28", holderFetch(owner));
      const changed: string[] = [];
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
        changed.push(params.uri);
      });
      const stream = await client.listen({ resourceSubscriptions: uris });
      const change = (uri: string) => client.callTool({ name: "change_resource", arguments: { uri } });
      return { client, stream, changed, change };
    }

    test("gets the changes of its resources alone, until it ends", async () => {
      const [one, two] = [await listening([WATCHED]), await listening([OTHER])];
      expect(one.stream.honoredFilter).toEqual({ resourceSubscriptions: [WATCHED] });
      await one.change(WATCHED);
      await one.change(OTHER);
      await vi.waitFor(() => expect([one.changed, two.changed]).toEqual([[WATCHED], [OTHER]]));
      await one.stream.close();
      await two.change(WATCHED);
      await two.change(OTHER);
      await vi.waitFor(() => expect(two.changed).toEqual([OTHER, OTHER]));
      expect(one.changed).toEqual([WATCHED]);
      for (const { client } of [one, two]) await client.close();
    });

    test("needs the right to read each of its resources", async () => {
      const holder = await grant(started.platform, [
        ["compute", "execute", "fixture/**"],
        ["docs", "read", "test/static-text"],
      ]);
      const { client } = await listening([OTHER], holder);
      expect((await refusal(client.listen({ resourceSubscriptions: [OTHER, WATCHED] }))).code).toBe(-32001);
      await client.close();
    });

    test("gets nothing more after its token is revoked", async () => {
      const holder = await grantAll(started.platform);
      const [revoked, other] = [await listening([WATCHED], holder), await listening([WATCHED])];
      const revocation = createRevocation(engine, holder.revocationId, "block", holder.keypair);
      const params = { revocation, dct: holder.token };
      await result(started.platform.post("/delegateos", call("delegateos/revoke", params)));
      await other.change(WATCHED);
      await vi.waitFor(() => expect(other.changed).toEqual([WATCHED]));
      await other.change(WATCHED);
      await vi.waitFor(() => expect(other.changed).toEqual([WATCHED, WATCHED]));
      expect(revoked.changed).toEqual([]);
      await revoked.client.close();
      await other.client.close();
    });
  },
);
