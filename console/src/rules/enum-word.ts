/**
 * Returns the word for an enum's value, e.g. `Schema match`; `Unknown` for a value that this version does not know.
 *
 * @param names the enum's generated object, which maps names to numbers
 */
export function enumWord(names: Readonly<Record<string, number>>, value: number): string {
  const name = Object.keys(names).find((each) => names[each] === value) ?? "UNKNOWN";
  const words = name.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
