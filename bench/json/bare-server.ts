import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { reportCpu } from "../rate-of-cpu.ts";

/**
 * Runs the reference in a separate process: bare node:http. It reads the body, parses it, and answers each path with the
 * value of a JSON document, which it writes for each call. The argument is a JSON object of documents by path.
 */

const answers = JSON.parse(process.argv[2] ?? "{}") as Record<string, unknown>;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    if (chunks.length > 0) JSON.parse(Buffer.concat(chunks).toString());
    const body = JSON.stringify(answers[request.url ?? ""]);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(body);
  });
});
reportCpu();
server.listen(0, "127.0.0.1", () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
