/**
 * Returns the processor time that this thread has used, in milliseconds. Linux raises the count in steps of a few
 * milliseconds. Sums over many short sections are right nevertheless, because each step falls into a section as often as
 * the section uses the processor.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
