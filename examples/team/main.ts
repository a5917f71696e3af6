/**
 * `npm run demo:team`: runs CAP's worked example on the platform at DEPUTE_URL or the default address. The user, the
 * orchestrator, PM, Analyst and QA are separate processes. Shows messages as they arrive, and the lineage afterwards.
 */
import { perform } from "./perform.ts";
import { AGENTS, documentOf, playOf } from "./play.ts";

const url = process.env.DEPUTE_URL ?? "http://127.0.0.1:8080";
const root = `T${Date.now().toString(36)}`;

const write = (text: string) => process.stdout.write(`${text}\n`);

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(`${url}${path}`, { ...init, headers: { "content-type": "application/json" } });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response;
}

/** Returns the beginning of a message's text. */
function wordsOf(message: Readonly<Record<string, unknown>>): string {
  const words = message.content ?? message.context_summary ?? message.inquiry ?? message.comment ?? "";
  const text = String(words);
  return text.length > 72 ? `${text.slice(0, 71)}…` : text;
}

try {
  for (const id of AGENTS) {
    await ask(`/cap/agents/${id}`, { method: "PUT", body: JSON.stringify(documentOf(`manifest-${id}`)) });
  }
  await perform(playOf(root, "decision"), {
    url,
    secretOf: () => "",
    startOf: async (id) => {
      const { last_sequence: last } = (await (await ask(`/cap/inbox/${id}?limit=1`)).json()) as {
        last_sequence: number;
      };
      return last;
    },
    onReport(id, report) {
      if (!("sent" in report)) return;
      const { sent, answer } = report;
      write(
        `${id} -> ${sent.recipient_id}  ${sent.task_id} ${sent.type} [${answer.effect ?? answer.error_code}]`,
      );
      write(`    ${wordsOf(sent)}`);
    },
  });
  write(`\nThe lineage, as it stands at ${url}/cap/tasks/${root}:\n`);
  write(await (await ask(`/cap/tasks/${root}?format=text`)).text());
} catch (error) {
  write(error instanceof TypeError ? `Nothing answers at ${url}: begin with \`npm start\`.` : String(error));
  process.exitCode = 1;
}
