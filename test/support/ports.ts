/**
 * Ports for the servers of tests. A chosen port is free until its server listens, and again while it restarts, so each
 * is reserved for the process that chose it, until that ends: a file by the port's name has the process's number.
 */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePort as chooseFree } from '../../src/embedded/ports.ts';

/** Apart from those that `farebox start` chooses. */
const RANGE = { from: 10_000, below: 20_000 };

const folder = join(tmpdir(), 'farebox-test-ports');

/** A free port on the loopback address, which no other test on this machine chooses. */
export async function choosePort(): Promise<number> {
  for (;;) {
    const port = await chooseFree(undefined, RANGE);
    if (reserve(port)) return port;
  }
}

function reserve(port: number): boolean {
  const file = join(folder, String(port));
  const lock = `${file}.lock`;
  mkdirSync(folder, { recursive: true });
  try {
    mkdirSync(lock);
  } catch {
    return false; // Another process is about to reserve it.
  }
  try {
    if (isHeld(file)) return false;
    writeFileSync(file, String(process.pid));
    return true;
  } finally {
    rmdirSync(lock);
  }
}

/** By another process that runs. This one may choose a port again, long after. */
function isHeld(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    process.kill(pid, 0);
    return pid !== process.pid;
  } catch {
    return false;
  }
}
