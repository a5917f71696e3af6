import { once } from "node:events";
import { connect, constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { expect, test, vi } from "vitest";
import { createLogger } from "../log.ts";
import { EchoService } from "../testing/echo.ts";
import { startEchoServer } from "../testing/echo-server.ts";

test.each([
  ["the adapter", false],
  ["the fast path", true],
])("a client that resets a stream with INTERNAL_ERROR cancels the call in %s", async (_, fast) => {
  const lines: { level: string; code: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: "debug", name: "test", destination });
  const { server } = await startEchoServer({ fast, maxRequestBytes: 1000, log });
  const session = connect(server.url).on("error", () => {});
  try {
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const path = "/depute.testing.EchoService/Server";
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    stream.on("error", () => {});
    const first = once(stream, "data");
    stream.end(
      encodeEnvelope(
        0,
        toBinary(EchoService.method.server.input, create(EchoService.method.server.input, { do: "hang" })),
      ),
    );
    await first;
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    await vi.waitFor(() => expect(lines).toMatchObject([{ level: "debug", code: "CANCELLED" }]));
  } finally {
    session.destroy();
    await server.close(100);
  }
});
