import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { cellsOf } from "../print/cells.ts";
import { jsonText, yamlText } from "../print/documents.ts";
import { layTable } from "../print/table.ts";
import { layoutFor } from "../print/terminal.ts";
import type { Column, Shown } from "../table/command.ts";
import { readable } from "./readable.ts";

export type Form = "table" | "wide" | "json" | "yaml" | "id";

/** Whether an output form prints whole documents: true for JSON and YAML. */
export function isDocument(form: Form): form is "json" | "yaml" {
  return form === "json" || form === "yaml";
}

/** Prints items as they arrive: as rows of one table, as documents, or only their ids. */
export class ItemPrinter {
  readonly #form: Form;
  readonly #columns: readonly Column[];
  #widths: readonly number[] | undefined;

  constructor(form: Form, { columns, wide = [] }: Omit<Shown, "item">) {
    this.#form = form;
    this.#columns = form === "wide" ? [...columns, ...wide] : columns;
  }

  /** Prints several items: as rows of the table, lines of JSON, YAML documents, or ids. */
  async print(items: readonly JsonValue[]): Promise<void> {
    if (this.#form === "json") for (const item of items) write(jsonText(item, 0));
    else if (this.#form === "yaml")
      for (const item of items) write(`---\n${(await yamlText(item)).trimEnd()}`);
    else if (this.#form === "id") for (const item of items) write(idOf(item, this.#columns));
    else this.#printRows(items);
  }

  #printRows(items: readonly JsonValue[]): void {
    const { lines, widths } = layTable(
      this.#columns.map(([heading]) => heading),
      items.map((item) => cellsOf(item, this.#columns, Date.now())),
      {
        ...layoutFor(process.stdout),
        header: this.#widths === undefined,
        ...(this.#widths && { widths: this.#widths }),
      },
    );
    this.#widths = widths;
    if (lines.length > 0) write(lines.join("\n"));
  }
}

/** Returns the id of an item: the text of the first column. */
function idOf(item: JsonValue, columns: readonly Column[]): string {
  return cellsOf(item, columns.slice(0, 1), 0)[0]?.text ?? "";
}

/**
 * Prints one document as JSON or YAML, with the same members as its protobuf contract. For a table form, prints YAML in
 * which the JSON in bytes fields is decoded.
 */
export async function printDocument(form: Form, document: JsonObject): Promise<void> {
  if (form === "json") write(jsonText(document, 2));
  else write((await yamlText(form === "yaml" ? document : readable(document))).trimEnd());
}

/** Prints lines of text. */
export function write(text: string): void {
  process.stdout.write(`${text}\n`);
}

/**
 * Prints a message for people. It goes to standard error, so that standard output contains only the data that scripts
 * read.
 */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}
