/** The programs that are compared, all on one Postgres. */
export const NAMES = ["pg-boss", "graphile-worker", "Depute", "Depute, in batches"] as const;
export type Name = (typeof NAMES)[number];

/** A program that creates jobs and does them. */
export interface Jobs {
  /** Creates jobs and waits until each is done. The number of jobs that are created and not yet done is limited. */
  run(jobs: number, atOnce: number): Promise<void>;
}

export interface Question {
  readonly jobs: number;
  readonly atOnce: number;
}
