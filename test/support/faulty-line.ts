/**
 * A TCP proxy on the line between two parts of Farebox, with the faults that networks have. Bytes keep their order, and
 * no fault changes them.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { listenOnLoopback } from './loopback.ts';

export type LineFault =
  /** Every piece of data arrives this much later. */
  | { readonly kind: 'delayed'; readonly ms: number }
  | { readonly kind: 'narrow'; readonly bytesPerSecond: number }
  /** This part of the pieces resets their connection instead of arriving. */
  | { readonly kind: 'resetting'; readonly part: number }
  /** Nothing arrives in either direction, not even the end of a connection, until the line is mended. */
  | { readonly kind: 'silent' }
  /** Requests arrive, answers do not until the line is mended. */
  | { readonly kind: 'half_open' }
  /** Answers arrive, requests do not until the line is mended. */
  | { readonly kind: 'deaf' }
  /** Connections are reset, and new ones too. */
  | { readonly kind: 'cut' };

export interface FaultyLine {
  readonly port: number;
  /** From now on, instead of any earlier fault. */
  damage(fault: LineFault): void;
  mend(): void;
  /** Nothing passes on connections that are open now, ever, like at a firewall that forgot them. New ones work. */
  forget(): void;
  stop(): Promise<void>;
}

interface Line {
  fault: LineFault | undefined;
  /** Resolves when the line is mended or damaged in another way. */
  changed: PromiseWithResolvers<void>;
  readonly random: () => number;
}

export async function startFaultyLine(
  target: { readonly host: string; readonly port: number },
  random: () => number = Math.random,
): Promise<FaultyLine> {
  const line: Line = { fault: undefined, changed: Promise.withResolvers(), random };
  const connections = new Set<Connection>();
  // A socket that may not be half open answers the end of a connection itself, during a fault too.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (line.fault?.kind === 'cut') {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ ...target, allowHalfOpen: true });
    const connection = new Connection(line, client, upstream);
    connections.add(connection);
    void connection.ended.then(() => connections.delete(connection));
  });
  const change = (fault: LineFault | undefined) => {
    line.fault = fault;
    line.changed.resolve();
    line.changed = Promise.withResolvers();
    if (fault?.kind === 'cut') for (const connection of connections) connection.reset();
  };
  const port = await listenOnLoopback(server);
  return {
    port,
    damage: change,
    mend: () => change(undefined),
    forget: () => {
      for (const connection of connections) connection.isForgotten = true;
    },
    stop: async () => {
      const closed = closeServer(server);
      change({ kind: 'cut' });
      await closed;
    },
  };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

class Connection {
  isForgotten = false;
  readonly ended: Promise<unknown>;
  readonly #line: Line;
  readonly #sockets: readonly [Socket, Socket];

  constructor(line: Line, client: Socket, upstream: Socket) {
    this.#line = line;
    this.#sockets = [client, upstream];
    for (const socket of this.#sockets) socket.setNoDelay(true).on('error', () => {});
    this.ended = Promise.all([
      this.#pass(client, upstream, false),
      this.#pass(upstream, client, true),
    ]);
  }

  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** One direction, until its end. */
  async #pass(from: Socket, to: Socket, isAnswer: boolean): Promise<void> {
    /** When the last byte of the previous piece is through a narrow line. */
    let freeAtMs = 0;
    const pieces: { readonly data: Buffer | 'end' | 'close'; readonly atMs: number }[] = [];
    let arrived = Promise.withResolvers<void>();
    const take = (data: Buffer | 'end' | 'close') => {
      pieces.push({ data, atMs: performance.now() });
      arrived.resolve();
    };
    from.on('data', take);
    from.on('end', () => take('end'));
    from.on('close', () => take('close'));
    for (;;) {
      const piece = pieces.shift();
      if (!piece) {
        arrived = Promise.withResolvers();
        await arrived.promise;
        continue;
      }
      while (this.#isHeld(isAnswer)) await this.#line.changed.promise;
      const { data, atMs } = piece;
      if (this.isForgotten) {
        // Everything is dropped, the end too.
        if (data === 'close') return;
        continue;
      }
      if (data === 'close') {
        to.destroy();
        return;
      }
      if (data === 'end') {
        to.end();
        continue;
      }
      const { fault } = this.#line;
      if (fault?.kind === 'resetting' && this.#line.random() < fault.part) {
        this.reset();
        return;
      }
      if (fault?.kind === 'delayed') await delay(Math.max(atMs + fault.ms - performance.now(), 0));
      if (fault?.kind === 'narrow') {
        const tookMs = (data.length / fault.bytesPerSecond) * 1_000;
        freeAtMs = Math.max(freeAtMs, performance.now()) + tookMs;
        await delay(Math.max(freeAtMs - performance.now(), 0));
      }
      if (!to.destroyed) to.write(data);
    }
  }

  #isHeld(isAnswer: boolean): boolean {
    const kind = this.#line.fault?.kind;
    return kind === 'silent' || kind === (isAnswer ? 'half_open' : 'deaf');
  }
}
