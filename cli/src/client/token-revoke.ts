import type { JsonObject } from "@bufbuild/protobuf";
import { CommandError } from "../exit-codes.ts";
import type { Invocation } from "../table/command.ts";
import { type Connection, connected, keyOf } from "./connection.ts";
import { readCredential } from "./files.ts";
import { type Form, ItemPrinter, isDocument, printDocument } from "./output.ts";
import { tokenFrom } from "./token-inspect.ts";

/** `depute tokens revoke ID`. */
export async function revokeToken(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const id = String(values.ID);
  const revocationId = id.startsWith("@") ? ((await tokenFrom(id)).ids.at(-1) ?? "") : id;
  await connected(invocation, async (connection) => {
    const answer = await revoke(connection, invocation, revocationId);
    const form = values.output as Form;
    if (isDocument(form)) return printDocument(form, answer);
    await new ItemPrinter(form, {
      columns: [
        ["SEQUENCE", "revocation.sequence"],
        ["SCOPE", "revocation.entry.scope", "enum:REVOCATION_SCOPE_"],
        ["REVOKED", "revocation.entry.revocationId"],
        ["BY", "revocation.entry.revokedBy"],
      ],
    }).print([answer]);
  });
}

async function revoke(
  connection: Connection,
  { values }: Invocation,
  revocationId: string,
): Promise<JsonObject> {
  const scope = values.scope === "block" ? "block" : "chain";
  const constant = `REVOCATION_SCOPE_${scope.toUpperCase()}`;
  const keyId = values["kept-key"];
  if (keyId !== undefined) {
    return connection.call("keys", "revokeWithKey", { keyId: String(keyId), revocationId, scope: constant });
  }
  const key = await keyOf(connection.target);
  const { tokenFile } = connection.target;
  const id = String(values.ID);
  const source = id.startsWith("@") ? id.slice(1) : tokenFile;
  if (key === undefined)
    return connection.call("revocations", "revokeMintedToken", { revocationId, scope: constant });
  if (source === undefined) {
    throw new CommandError("a signed revocation needs the token; pass it as @FILE or with --token-file");
  }
  const { createRevocation, portableEngine, SJT_FORMAT } = await import("@depute/dct");
  const entry = createRevocation(portableEngine, revocationId, scope, key);
  return connection.call("revocations", "revokeToken", {
    entry: { ...entry, scope: constant },
    token: { token: readCredential(source), format: SJT_FORMAT },
  });
}
