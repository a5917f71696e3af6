/** Works on tasks that count words. Argument: the platform's address. Prints the agent id when the worker is ready. */
import { connect, createKey } from "@depute/client";

const [url = "http://127.0.0.1:8080"] = process.argv.slice(2);
const key = createKey();
const agentId = `counter-${key.principal.id.slice(0, 8)}`;
const depute = connect(url, { key });

await depute.register({
  id: agentId,
  principal: key.principal.id,
  description: "Counts the words of texts.",
  capabilities: [
    {
      id: "count-words",
      input: { type: "object", properties: { texts: { type: "array", items: { type: "string" } } } },
      output: { type: "object", properties: { total: { type: "integer" } } },
    },
  ],
});
const worker = depute.work({
  agentId,
  capacity: 4,
  async work(input, { saved, progress, checkpoint }) {
    const { texts } = input as { texts: string[] };
    // If an earlier attempt was interrupted, `saved` has the counts of its last checkpoint.
    const counts = (saved ?? []) as number[];
    for (const text of texts.slice(counts.length)) {
      counts.push(text.split(/\s+/).length);
      await progress(counts.length, texts.length);
      await checkpoint(counts);
    }
    return { output: { counts, total: counts.reduce((sum, count) => sum + count, 0) } };
  },
});
console.log(agentId);
process.once("SIGTERM", async () => {
  await worker.stop();
  depute.close();
});
