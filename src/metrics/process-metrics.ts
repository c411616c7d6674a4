/** Metrics of every process: memory, CPU, event-loop lag, and its connection pools to Postgres. */
import { collectDefaultMetrics, Gauge, type Registry } from '@prometheus-io/client';

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
}
