/** One step of a schema. A released one is never edited: its checksum is kept in the database. */
export interface Migration {
  /** Positive, ascending through the list. */
  readonly id: number;
  readonly name: string;
  /** Statements separated by semicolons, without transaction control. */
  readonly sql: string;
}
