/** The CPU time of processes, as Linux counts it. */
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** In seconds: the CPU time of these processes and of all that they started, those that have ended included. */
export function cpuSeconds(roots: readonly number[]): number {
  const all = processes();
  const wanted = new Set(roots);
  // A process has a higher number than its parent, but for the rare time that numbers start anew.
  for (const { pid, parent } of all) if (wanted.has(parent)) wanted.add(pid);
  const ticks = all.filter(({ pid }) => wanted.has(pid)).map((process) => process.ticks);
  return ticks.reduce((sum, value) => sum + value, 0) / TICKS_PER_SECOND;
}

/** By number. `ticks`: of CPU time, with those of ended children. */
function processes() {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids
    .toSorted((a, b) => a - b)
    .flatMap((pid) => {
      const fields = statOf(pid);
      if (fields === undefined) return [];
      const [, parent = 0, , , , , , , , , , ...times] = fields.map(Number);
      return [{ pid, parent, ticks: times.slice(0, 4).reduce((sum, value) => sum + value, 0) }];
    });
}

/** The fields of /proc/<pid>/stat from the third on. Undefined when the process has ended. */
function statOf(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
  } catch {
    return undefined;
  }
}

export const childrenOfThis = () =>
  processes().flatMap(({ pid, parent }) => (parent === process.pid ? [pid] : []));
