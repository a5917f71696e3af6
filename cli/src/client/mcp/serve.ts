import { createInterface } from "node:readline";
import { CommandError } from "../../exit-codes.ts";
import type { Invocation } from "../../table/command.ts";
import type { Context } from "../config.ts";
import { keyOf, targetOf } from "../connection.ts";
import { readCredential } from "../files.ts";
import { remark } from "../output.ts";
import { tlsOf } from "../tls.ts";
import type { Message } from "./exchange.ts";
import { type RelayOptions, StdioRelay } from "./relay.ts";

/** Matches the names that the configuration allows for a server behind the proxy. */
const SERVER = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** After the end of the input, the command waits this many milliseconds for the answers to open requests. */
const DRAIN_MS = 5_000;

/**
 * `depute mcp [SERVER]`: serves the MCP server of a running platform, or a server behind its proxy, over standard input
 * and output. The command ends when its input ends, or at SIGINT or SIGTERM.
 */
export async function serveMcp(invocation: Invocation): Promise<void> {
  const target = targetOf(invocation);
  const { server, publicUrl = server } = target;
  const name = String(invocation.values.SERVER ?? "");
  if (name !== "" && !SERVER.test(name))
    throw new CommandError(
      `${JSON.stringify(name)} is not the name of an MCP server; see the platform's --mcp-config`,
    );
  const path = name === "" ? "/mcp" : `/mcp/${name}`;
  const credentials = await credentialsFor(target, `${publicUrl}${path}`, name !== "");
  const relay = new StdioRelay({
    url: `${server}${path}`,
    tls: tlsOf(target),
    credentials,
    write: (message) => process.stdout.write(`${JSON.stringify(message)}\n`),
    onFault: (thrown) => remark(`depute mcp: ${thrown instanceof Error ? thrown.message : String(thrown)}`),
  });
  const lines = createInterface({ input: process.stdin });
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      stopped.abort();
      lines.close();
    });
  for await (const line of lines) if (line.trim() !== "") relay.receive(line);
  await relay.close(stopped.signal.aborted ? 0 : DRAIN_MS);
  process.stdin.destroy();
}

/**
 * Returns a function that creates the headers with the credentials for one request. The function reads the secret or
 * the token from its file for each request, because another program may have renewed the file.
 *
 * @param htu the address for which proofs are made
 * @param coversArguments whether a proof also covers the arguments, as servers behind the proxy require
 */
async function credentialsFor(
  target: Context,
  htu: string,
  coversArguments: boolean,
): Promise<RelayOptions["credentials"]> {
  const { secretFile, tokenFile } = target;
  const keypair = await keyOf(target);
  if (secretFile !== undefined && keypair !== undefined)
    throw new CommandError("a call may have only one kind of credentials; set either a secret or a key");
  if (secretFile !== undefined)
    return async () => ({ authorization: `Bearer ${readCredential(secretFile)}` });
  if (keypair === undefined) {
    if (tokenFile === undefined) return async () => ({});
    throw new CommandError(
      "a token needs a proof of its holder; set --key-file to the file of the holder's key",
    );
  }
  const { createProof, portableEngine } = await import("@depute/dct");
  return async (htm, message) => {
    const token = tokenFile === undefined ? undefined : readCredential(tokenFile);
    const covered = coversArguments && message !== undefined ? { arguments: provedOf(message) } : {};
    const claims = { htm, htu, ...(token !== undefined && { token }), ...covered };
    const dpop = createProof(portableEngine, keypair, claims);
    return { dpop, ...(token !== undefined && { authorization: `DPoP ${token}` }) };
  };
}

/**
 * Returns the values that a proof covers: the arguments of a tool call, or the parameters of any other request without
 * `_meta` and `_delegateos`.
 */
function provedOf({ method, params }: Message): unknown {
  const { _meta, _delegateos, arguments: args = {}, ...rest } = (params ?? {}) as Record<string, unknown>;
  if (method === "tools/call") return args;
  return "arguments" in ((params ?? {}) as object) ? { ...rest, arguments: args } : rest;
}
