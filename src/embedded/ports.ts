/**
 * Ports on the loopback address. We pick ports below the range that systems use for outgoing connections, so a
 * remembered port is usually free at the next start.
 */
import { randomInt } from 'node:crypto';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { connect, createServer } from 'node:net';

export interface PortRange {
  readonly from: number;
  readonly below: number;
}

const RANGE: PortRange = { from: 20_000, below: 30_000 };

/** Chosen ports, the latest last. Until its server listens, a chosen port is free and could be chosen again. */
const chosen = new Set<number>();

export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen({ port, host, exclusive: true }, () => resolve(true));
  });
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}

export interface Claim {
  release(): void;
}

/**
 * Claims the port before its servers listen, against other starts. The processes of the API share their port, and the
 * system would let those of two starts share it too. An abstract socket is as unique as the port (both belong to the
 * network namespace), and ends with this process. Undefined when another process has it. Only Linux has such sockets,
 * and only there processes share a port.
 */
export function claimPort(port: number): Promise<Claim | undefined> {
  const server = createServer((socket) => socket.destroy());
  const claim = { release: () => void server.close() };
  if (process.platform !== 'linux') return Promise.resolve(claim);
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen({ path: `\0farebox-port-${port}` }, () => resolve(claim)).unref();
  });
}

/** The preferred port when it is free, otherwise another one of the range, which this process did not choose lately. */
export async function choosePort(preferred?: number, range = RANGE): Promise<number> {
  if (preferred !== undefined && (await isPortFree(preferred))) return preferred;
  for (;;) {
    const port = randomInt(range.from, range.below);
    if (chosen.has(port)) continue;
    for (const oldest of chosen)
      if (chosen.size * 2 > range.below - range.from) chosen.delete(oldest);
    chosen.add(port);
    if (await isPortFree(port)) return port;
  }
}

/** Whether something accepts connections on the port. */
export function isPortOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** The process that listens on the port, as `node server.js (process 123)`, where the system tells. */
export function findPortHolder(port: number): string | undefined {
  try {
    const inode = listeningInode(port);
    const pid = inode && readdirSync('/proc').find((entry) => holdsSocket(entry, inode));
    return pid && `${commandOf(pid)} (process ${pid})`;
  } catch {
    return undefined; // not Linux, or it ended meanwhile
  }
}

/** Only the beginning of the command line: the program, without secrets among its arguments. */
function commandOf(pid: string): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, 3).join(' ').trim();
}

function listeningInode(port: number): string | undefined {
  const LISTEN = '0A';
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['tcp', 'tcp6']
    .flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[1]?.endsWith(suffix) && fields[3] === LISTEN)?.[9];
}

function holdsSocket(pid: string, inode: string): boolean {
  if (!/^\d+$/.test(pid)) return false;
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some(
      (fd) => readlinkSync(`${folder}/${fd}`) === `socket:[${inode}]`,
    );
  } catch {
    return false; // another user's process
  }
}
