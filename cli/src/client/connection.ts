import {
  type DescMethod,
  type DescService,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { failuresAsUnavailable, SessionManager } from "@depute/client/transport";
import { CommandError, EXIT } from "../exit-codes.ts";
import type { Invocation, ServiceName } from "../table/command.ts";
import { type Context, readConfig } from "./config.ts";
import { serverAddress } from "./context-commands.ts";
import { readCredential } from "./files.ts";
import { durationMs } from "./request.ts";
import { loadService } from "./services.ts";
import { tlsOf } from "./tls.ts";

const DEFAULT_SERVER = "http://127.0.0.1:8080";

/**
 * If a connection with open calls receives no data for this many milliseconds, the client checks the connection by a
 * ping.
 */
const PING_MS = 30_000;

/** A connection for one command. Requests and responses have the ProtoJSON form of their messages. */
export interface Connection {
  /** @throws ConnectError if the call fails, CommandError if the request does not match its message */
  call(service: ServiceName, method: string, request: JsonObject): Promise<JsonObject>;
  stream(service: ServiceName, method: string, request: JsonObject): AsyncIterable<JsonObject>;
  readonly target: Context;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Opens a connection, calls `run` with it, and closes the connection. */
export async function connected<Result>(
  invocation: Invocation,
  run: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const target = targetOf(invocation);
  const timeoutMs = durationMs(String(invocation.values.timeout), "--timeout");
  const manager = new SessionManager(target.server, { pingIntervalMs: PING_MS }, tlsOf(target));
  const connectTransport = createConnectTransport({
    baseUrl: target.server,
    httpVersion: "2",
    sessionManager: manager,
    interceptors: await credentialsOf(target),
  });
  const transport = failuresAsUnavailable(connectTransport);
  const interrupted = new AbortController();
  const interrupt = () => {
    process.exitCode = 130;
    interrupted.abort();
  };
  process.once("SIGINT", interrupt);
  const { signal } = interrupted;
  try {
    return await run({
      target,
      signal,
      call: async (name, methodName, request) => {
        const { method, message } = await requestOf(name, methodName, request);
        const answer = await transport.unary(method as never, signal, timeoutMs, undefined, message as never);
        return toJson(method.output, answer.message as Message) as JsonObject;
      },
      stream: (name, methodName, request) => streamed(transport, name, methodName, request, signal),
    });
  } finally {
    process.off("SIGINT", interrupt);
    manager.abort();
  }
}

async function* streamed(
  transport: Transport,
  name: ServiceName,
  methodName: string,
  request: JsonObject,
  signal: AbortSignal,
): AsyncIterable<JsonObject> {
  const { method, message } = await requestOf(name, methodName, request);
  async function* only() {
    yield message;
  }
  const answer = await transport.stream(method as never, signal, undefined, undefined, only() as never);
  for await (const each of answer.message) yield toJson(method.output, each as Message) as JsonObject;
}

async function requestOf(name: ServiceName, methodName: string, request: JsonObject) {
  const service: DescService = await loadService(name);
  const method: DescMethod | undefined = service.method[methodName];
  if (method === undefined) throw new Error(`${service.typeName} has no method ${methodName}`);
  const { requestId } = request;
  const needsId =
    requestId === undefined && method.input.fields.some(({ localName }) => localName === "requestId");
  const isOwnName = method.input.typeName.endsWith("ExecutionRequest") || isReference(methodName);
  const full = needsId && !isOwnName ? { ...request, requestId: crypto.randomUUID() } : request;
  try {
    return { method, message: fromJson(method.input, full as JsonValue) };
  } catch (error) {
    const problem = (error as Error).message.replace(/^cannot decode /, "");
    throw new CommandError(
      `the request is not valid: ${problem}; see the contract of ${method.input.typeName}`,
    );
  }
}

/**
 * Whether the field `requestId` of this method names an execution. In most other methods, the field is the request id
 * that makes a repeated call safe.
 */
function isReference(methodName: string): boolean {
  return /Execution|Receipts|Settlement/.test(methodName);
}

/**
 * Returns the platform's address and the credentials for a command. A flag has priority over an environment variable,
 * and the variable has priority over the selected context.
 *
 * @throws CommandError if the context does not exist, or the address is not the address of a server
 */
export function targetOf({ values }: Invocation, env: NodeJS.ProcessEnv = process.env): Context {
  const context = contextOf(values.context === undefined ? undefined : String(values.context), env);
  const setting = (flag: string, variable: string, kept: string | undefined) =>
    values[flag] === undefined ? env[variable] || kept : String(values[flag]);
  const server = serverAddress(setting("server", "DEPUTE_URL", context.server) ?? DEFAULT_SERVER);
  const caFile = setting("ca-file", "DEPUTE_CA_FILE", context.caFile);
  const clientCertFile = setting("client-cert-file", "DEPUTE_CLIENT_CERT_FILE", context.clientCertFile);
  const clientKeyFile = setting("client-key-file", "DEPUTE_CLIENT_KEY_FILE", context.clientKeyFile);
  const keyFile = setting("key-file", "DEPUTE_KEY", context.keyFile);
  const tokenFile = setting("token-file", "DEPUTE_TOKEN_FILE", context.tokenFile);
  const secretFile = setting("secret-file", "DEPUTE_SECRET_FILE", context.secretFile);
  return {
    server,
    ...(server === context.server && context.publicUrl !== undefined && { publicUrl: context.publicUrl }),
    ...(caFile && { caFile }),
    ...(clientCertFile && { clientCertFile }),
    ...(clientKeyFile && { clientKeyFile }),
    ...(keyFile && { keyFile }),
    ...(tokenFile && { tokenFile }),
    ...(secretFile && { secretFile }),
  };
}

function contextOf(name: string | undefined, env: NodeJS.ProcessEnv): Partial<Context> {
  const { current, contexts } = readConfig();
  const chosen = name ?? (env.DEPUTE_CONTEXT || current);
  if (chosen === undefined) return {};
  const context = Object.hasOwn(contexts, chosen) ? contexts[chosen] : undefined;
  if (context !== undefined) return context;
  throw new CommandError(
    `the context ${JSON.stringify(chosen)} does not exist; see depute context list`,
    EXIT.notFound,
  );
}

/**
 * Returns the key of a context; undefined if the context has none.
 *
 * @throws CommandError if the file contains no key
 */
export async function keyOf({ keyFile }: Context) {
  if (keyFile === undefined) return undefined;
  const { keyFromSeed } = await import("@depute/client");
  try {
    return keyFromSeed(readCredential(keyFile));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandError(
      `${keyFile} has no key; it needs 32 bytes in base64url, as depute keys new writes them`,
    );
  }
}

async function credentialsOf(target: Context): Promise<Interceptor[]> {
  const { secretFile, tokenFile, server, publicUrl = server } = target;
  const key = await keyOf(target);
  if (secretFile !== undefined && key !== undefined) {
    throw new CommandError("a call may have only one kind of credentials; set either a secret or a key");
  }
  if (secretFile !== undefined) {
    const secret = readCredential(secretFile);
    return [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${secret}`);
        return next(request);
      },
    ];
  }
  if (key === undefined) {
    if (tokenFile === undefined) return [];
    throw new CommandError(
      "a token needs a proof of its holder; set --key-file to the file of the holder's key",
    );
  }
  const [{ holderInterceptor }, { portableEngine }] = await Promise.all([
    import("@depute/client"),
    import("@depute/dct"),
  ]);
  const token = tokenFile === undefined ? undefined : readCredential(tokenFile);
  return [
    holderInterceptor({
      engine: portableEngine,
      keypair: key,
      publicUrl,
      ...(token !== undefined && { token }),
    }),
  ];
}

/** Whether a call failed because the user pressed Ctrl-C. */
export function isInterrupted(error: unknown, { signal }: Connection): boolean {
  return signal.aborted && error instanceof ConnectError;
}
