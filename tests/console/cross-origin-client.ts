import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";

/** Calls a platform of another origin: by Connect, a stream by gRPC-Web, and a call that is refused. */
export async function call(url: string): Promise<string[]> {
  const connect = createConnectTransport({ baseUrl: url });
  const web = createGrpcWebTransport({ baseUrl: url });
  const { principal } = await createClient(TokenService, connect).getIssuer({});
  let first = "";
  for await (const { sequence } of createClient(RevocationService, web).watchRevocations({
    sendStart: true,
  })) {
    first = String(sequence);
    break;
  }
  const refused = await createClient(TaskService, web)
    .getTask({ taskId: "none" })
    .then(
      () => "answered",
      (error: unknown) => Code[ConnectError.from(error).code] ?? "",
    );
  return [principal, first, refused];
}
