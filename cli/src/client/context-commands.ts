import { resolve } from "node:path";
import { CommandError, EXIT } from "../exit-codes.ts";
import { oneLine } from "../print/safe-text.ts";
import { layTable } from "../print/table.ts";
import { layoutFor } from "../print/terminal.ts";
import type { Invocation } from "../table/command.ts";
import { type Context, readConfig, writeConfig } from "./config.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** `depute context list`. */
export async function listContexts(): Promise<void> {
  const { current, contexts } = readConfig();
  const rows = Object.entries(contexts).map(([name, context]) =>
    [name === current ? "*" : "", name, context.server, credentials(context)].map((text) => ({
      text: oneLine(text),
    })),
  );
  const { lines } = layTable(["CURRENT", "NAME", "SERVER", "CREDENTIALS"], rows, {
    ...layoutFor(process.stdout),
    header: true,
  });
  console.log(lines.join("\n"));
}

function credentials({ keyFile, tokenFile, secretFile }: Context): string {
  if (secretFile !== undefined) return "secret";
  if (keyFile === undefined) return "none";
  return tokenFile === undefined ? "key" : "key and token";
}

/** `depute context use NAME`. */
export async function useContext({ values }: Invocation): Promise<void> {
  const name = contextNamed(String(values.NAME));
  writeConfig({ ...readConfig(), current: name });
  console.log(`Context ${name} is selected.`);
}

/** `depute context create NAME`. If no context is selected yet, selects the new context. */
export async function createContext({ values }: Invocation): Promise<void> {
  const name = String(values.NAME);
  if (!NAME.test(name)) {
    throw new CommandError(
      "NAME must have 1 to 64 letters, digits, dots, dashes and underscores; choose another name",
    );
  }
  const { current = name, contexts } = readConfig();
  const path = (flag: string) => (values[flag] === undefined ? undefined : resolve(String(values[flag])));
  const fields = {
    server: serverAddress(String(values.server)),
    publicUrl: values["public-url"] === undefined ? undefined : serverAddress(String(values["public-url"])),
    caFile: path("ca-file"),
    clientCertFile: path("client-cert-file"),
    clientKeyFile: path("client-key-file"),
    keyFile: path("key-file"),
    tokenFile: path("token-file"),
    secretFile: path("secret-file"),
  };
  const context = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  writeConfig({ current, contexts: { ...contexts, [name]: context as unknown as Context } });
  console.log(`Context ${name} is stored.`);
}

/** `depute context delete NAME`. */
export async function deleteContext({ values }: Invocation): Promise<void> {
  const name = contextNamed(String(values.NAME));
  const { current, contexts } = readConfig();
  const { [name]: _, ...others } = contexts;
  writeConfig({ contexts: others, ...(current !== undefined && current !== name && { current }) });
  console.log(`Context ${name} is deleted.`);
}

function contextNamed(name: string): string {
  const { contexts } = readConfig();
  if (Object.hasOwn(contexts, name)) return name;
  throw new CommandError(
    `the context ${JSON.stringify(name)} does not exist; see depute context list, or create it with depute context create`,
    EXIT.notFound,
  );
}

/**
 * Checks and returns the address of a platform.
 *
 * @throws CommandError if the text is not the address of a server
 */
export function serverAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "") {
    throw new CommandError("the server is not an address; write it as https://HOST[:PORT]");
  }
  return text.replace(/\/+$/, "");
}
