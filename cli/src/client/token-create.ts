import { CommandError } from "../exit-codes.ts";
import type { Invocation } from "../table/command.ts";
import { connected } from "./connection.ts";
import { type Form, isDocument, printDocument, write } from "./output.ts";
import { requestFrom } from "./request.ts";

/** Number of random bytes in a new contract id. */
const ID_BYTES = 6;

/** `depute tokens create`. */
export async function createToken(invocation: Invocation): Promise<void> {
  const texts = invocation.values.capability as readonly string[];
  const form = invocation.values.output as Form;
  await connected(invocation, async (connection) => {
    const answer = await connection.call("tokens", "mintToken", {
      contractId: newContractId(),
      ...requestFrom(invocation),
      capabilities: texts.map(capabilityOf),
    });
    if (isDocument(form)) await printDocument(form, answer);
    else write(String((answer.token as { token?: string } | undefined)?.token ?? ""));
  });
}

function newContractId(): string {
  return `ct_${Buffer.from(crypto.getRandomValues(new Uint8Array(ID_BYTES))).toString("hex")}`;
}

/** Parses NAMESPACE:ACTION:RESOURCE. The resource may contain colons. */
function capabilityOf(text: string) {
  const [namespace = "", action = "", ...resource] = text.split(":");
  if (namespace === "" || action === "" || resource.join(":") === "") {
    throw new CommandError(
      `--capability is ${JSON.stringify(text)}, but must be NAMESPACE:ACTION:RESOURCE, e.g. web:search:**`,
    );
  }
  return { namespace, action, resource: resource.join(":") };
}
