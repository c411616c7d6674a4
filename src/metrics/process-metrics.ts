/** Metrics of every process: memory, CPU, event-loop lag, its connection pools to Postgres, and its mails. */
import { collectDefaultMetrics, Counter, Gauge, type Registry } from '@prometheus-io/client';
import { mailCounts } from '../mail/send.ts';

/** A pool's state as reported by Slonik. */
export interface Pool {
  state(): {
    readonly acquiredConnections: number;
    readonly idleConnections: number;
    readonly waitingClients: number;
  };
}

export type Pools = Readonly<Record<string, Pool>>;

export function registerProcess(registry: Registry, pools: Pools): void {
  collectDefaultMetrics({ register: registry });
  const connections = new Gauge({
    name: 'farebox_pool_connections',
    help: 'Connections to Postgres, by pool and state (acquired, idle).',
    labelNames: ['pool', 'state'],
    registers: [registry],
    collect() {
      for (const [pool, each] of Object.entries(pools)) {
        const { acquiredConnections, idleConnections } = each.state();
        connections.set({ pool, state: 'acquired' }, acquiredConnections);
        connections.set({ pool, state: 'idle' }, idleConnections);
      }
    },
  });
  const waiting = new Gauge({
    name: 'farebox_pool_waiting',
    help: 'Requests waiting for a connection to Postgres, by pool.',
    labelNames: ['pool'],
    registers: [registry],
    collect() {
      for (const [pool, each] of Object.entries(pools)) {
        waiting.set({ pool }, each.state().waitingClients);
      }
    },
  });
  const mails = new Counter({
    name: 'farebox_mails_total',
    help: 'Mails by outcome: sent, refused (the recipient), failed (the mail server or the way to it), not_configured (no SMTP_URL).',
    labelNames: ['outcome'],
    registers: [registry],
    collect() {
      mails.reset();
      for (const [outcome, count] of Object.entries(mailCounts)) mails.inc({ outcome }, count);
    },
  });
}
