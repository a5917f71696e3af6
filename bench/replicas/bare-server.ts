import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { Pool } from "pg";

/**
 * Runs a plain gRPC server in a separate process. Its only method is CreateTask, and a call inserts one row into Postgres.
 * The argument is the database's address. The process reports the server's address to its parent.
 */

const pool = new Pool({ connectionString: process.argv[2], max: 5 });
await pool.query("CREATE TABLE IF NOT EXISTS bare_rows (request_id text PRIMARY KEY, value text NOT NULL)");
const server = createServer(
  connectNodeAdapter({
    routes(router) {
      router.service(TaskService, {
        async createTask({ requestId, draft }) {
          const sql = "INSERT INTO bare_rows (request_id, value) VALUES ($1, $2)";
          await pool.query({ name: "insert", text: sql, values: [requestId, draft?.description] });
          return {};
        },
      });
    },
  }),
);
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => {
  process.send?.({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
});
