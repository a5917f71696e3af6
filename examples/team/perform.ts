import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Part } from "./play.ts";
import type { Told } from "./player.ts";

const PLAYER = fileURLToPath(new URL("player.ts", import.meta.url));

export interface PerformOptions {
  readonly url: string;
  /** The secret that a participant shows; empty for none. */
  readonly secretOf: (id: string) => string;
  /** The newest sequence of a participant's inbox before the play. */
  readonly startOf: (id: string) => Promise<number>;
  /** Told of what each participant did, as it comes. */
  readonly onTold: (id: string, told: Told) => void;
}

/**
 * Has each participant play its parts in a process of its own, until the orchestrator has heard PM's answer.
 *
 * @throws Error when a message is refused or a process ends before that
 */
export async function perform(
  play: Readonly<Record<string, readonly Part[]>>,
  { url, secretOf, startOf, onTold }: PerformOptions,
): Promise<void> {
  const processes: ChildProcess[] = [];
  try {
    const starts = new Map<string, number>();
    for (const id of Object.keys(play)) starts.set(id, await startOf(id));
    // Who was heard last may be told of last.
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
          const told = JSON.parse(line) as Told;
          onTold(id, told);
          if ("sent" in told && told.status !== 201) reject(new Error(line));
          if ("sent" in told) toSend--;
          if (toSend === 0) unfinished.delete(id);
          const isAnswer =
            "heard" in told && told.heard.type === "message" && told.heard.sender_id === "pm-1";
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
