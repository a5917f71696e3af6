/** A place outside the data folder that stores the newest head of a log. */
export interface WitnessPlace {
  /** The file or address, for messages. */
  readonly address: string;
  /** How the operator can remove the head, as an instruction for messages; "remove that head" when absent. */
  readonly removal?: string;
  /** Returns the text of the newest head; undefined if there is none. Throws Error if the place does not answer. */
  read(): Promise<string | undefined>;
  /**
   * Replaces the text. Throws HeadMovedError if another head was published in the meantime, and Error if the place does
   * not confirm the write.
   */
  write(text: string): Promise<void>;
}

/** Thrown when another process has published a newer head. Read the log's head again before the next write. */
export class HeadMovedError extends Error {}
