/**
 * Returns the processor time that this thread has used, in milliseconds. Linux raises the count in steps of a few
 * milliseconds. Sums over many short sections are nevertheless correct on average.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
