/** A place outside the data folder that stores the newest head of a log. */
export interface WitnessPlace {
  /** The file or address, for messages. */
  readonly address: string;
  /** The way in which an operator removes the head, for messages; "remove that head" when absent. */
  readonly removal?: string;
  /** Returns the text of the newest head; undefined if there is none. Throws Error if the place does not answer. */
  read(): Promise<string | undefined>;
  /**
   * Replaces the text. Throws HeadMovedError if another head was published meanwhile, and Error if the place does not
   * confirm.
   */
  write(text: string): Promise<void>;
}

/** Another process published a newer head meanwhile. The caller must read the log's head again. */
export class HeadMovedError extends Error {}
