/**
 * `npm run demo:session`: two agents agree over ASP, on the platform at DEPUTE_URL or the default address. The
 * transcript and the platform's keys are saved, so that `depute verify-transcript` can check them.
 */
import { writeFileSync } from "node:fs";
import { negotiate } from "./negotiate.ts";

const url = process.env.DEPUTE_URL ?? "http://127.0.0.1:8080";
const [SESSION, KEYS] = ["session.json", "platform-keys.json"];

try {
  const { sessionId, transcript, keys } = await negotiate(url, (party, performative, state) =>
    console.log(`${party.padEnd(8)}${performative.padEnd(9)}${state}`),
  );
  writeFileSync(SESSION, JSON.stringify(transcript));
  writeFileSync(KEYS, JSON.stringify(keys));
  console.log(`\nSession ${sessionId} is in ${SESSION}. Verify it, offline:`);
  console.log(`  npx depute verify-transcript ${SESSION} --trust ${KEYS}`);
} catch (error) {
  const { message, cause } = error as Error;
  const isAway = (cause as { code?: unknown } | undefined)?.code === "ECONNREFUSED";
  console.error(isAway ? `Nothing answers at ${url}; start the platform with npm start.` : message);
  process.exitCode = 1;
}
