/** Exit codes of the commands, with their meaning for docs/cli.md. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  unreachable: 5,
  refused: 6,
  noResult: 7,
} as const;

export const EXIT_MEANINGS: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.ok, "success"],
  [EXIT.failed, "another failure, such as a setting that the platform does not accept"],
  [EXIT.usage, "wrong usage, or a request that the contracts do not allow"],
  [EXIT.notFound, "the object does not exist, or the caller does not see it"],
  [EXIT.denied, "the caller is not known, or has no authority"],
  [EXIT.unreachable, "the platform is not reachable, or does not answer in time"],
  [EXIT.refused, "the present state or a limit does not allow it"],
  [EXIT.noResult, "the task ended without a result"],
  [130, "interrupted by Ctrl-C"],
];

/** An error that the user can correct. The message states the fault and then the remedy, in one sentence. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage) {
    super(message);
    this.exitCode = exitCode;
  }
}
