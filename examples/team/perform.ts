import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Part } from "./play.ts";
import type { PlayerReport } from "./player.ts";

const PLAYER = fileURLToPath(new URL("player.ts", import.meta.url));

export interface PerformOptions {
  readonly url: string;
  /** Returns the secret with which a participant authenticates; empty for none. */
  readonly secretOf: (id: string) => string;
  /** Returns the newest sequence of a participant's inbox before the play begins. */
  readonly startOf: (id: string) => Promise<number>;
  /** Receives each participant's messages as they are sent or received. */
  readonly onReport: (id: string, report: PlayerReport) => void;
}

/**
 * Runs each participant in a separate process, until the orchestrator has received PM's answer.
 *
 * @throws Error when a message is refused, or when a process ends before the answer
 */
export async function perform(
  play: Readonly<Record<string, readonly Part[]>>,
  { url, secretOf, startOf, onReport }: PerformOptions,
): Promise<void> {
  const processes: ChildProcess[] = [];
  try {
    const starts = new Map<string, number>();
    for (const id of Object.keys(play)) starts.set(id, await startOf(id));
    // The orchestrator's report of the answer may arrive after all other reports. So the run also waits for
    // that report.
    const unfinished = new Set([...Object.keys(play), "the answer"]);
    await new Promise<void>((resolve, reject) => {
      for (const [id, parts] of Object.entries(play)) {
        const child = spawn(process.execPath, [PLAYER, url, id, secretOf(id)], {
          stdio: ["pipe", "pipe", "inherit"],
        });
        processes.push(child);
        child.stdin.end(JSON.stringify({ parts, start: starts.get(id) }));
        child.once("exit", (code) => reject(new Error(`${id} ended with ${code}`)));
        let toSend = parts.flatMap(({ send }) => send).length;
        createInterface(child.stdout).on("line", (line) => {
          const report = JSON.parse(line) as PlayerReport;
          onReport(id, report);
          if ("sent" in report && report.status !== 201) reject(new Error(line));
          if ("sent" in report) toSend--;
          if (toSend === 0) unfinished.delete(id);
          const isAnswer =
            "heard" in report && report.heard.type === "message" && report.heard.sender_id === "pm-1";
          if (id === "orchestrator" && isAnswer) unfinished.delete("the answer");
          if (unfinished.size === 0) resolve();
        });
      }
    });
  } finally {
    for (const child of processes) {
      child.removeAllListeners("exit");
      child.kill("SIGKILL");
    }
  }
}
