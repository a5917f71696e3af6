// Delegates work under an attenuated token, watches it, revokes the token. Arguments: agent id, platform's URL.
import { connect, createKey, narrowToken, reasonOf } from "@depute/client";

const [agentId = "", url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const [owner, assistant] = [createKey(), createKey()];
const platform = connect(url);
const granting = (resource: string) => [{ namespace: "depute:tasks", action: "delegate", resource }];

const granted = await platform.mint({
  delegatee: owner.principal.id,
  capabilities: granting(`${agentId}/*`),
  maxBudgetMicrocents: 1_000_000,
});
// The token's owner attenuates it offline, so the owner's key never leaves this process.
const narrowed = narrowToken(granted.token, owner, {
  delegatee: assistant.principal.id,
  capabilities: granting(`${agentId}/count-words`),
  lifetimeMs: 60_000,
});
const depute = connect(url, { key: assistant, token: narrowed.token });

const work = {
  agentId,
  capabilityId: "count-words",
  input: { texts: ["to be or not", "that is the question"] },
};
const task = await depute.delegate(work);
for await (const { type, data } of task.events()) {
  if (type === "progress") console.log(`${data.processed} of ${data.total}`);
  else console.log(type);
}
console.log(JSON.stringify((await task.result()).output));

await platform.revoke(narrowed, owner);
try {
  await depute.delegate(work);
} catch (error) {
  console.log(`refused: ${reasonOf(error)}`);
}
for (const each of [depute, platform]) each.close();
