/** Exposes an API process's own counts as Prometheus metrics, computed at each scrape. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { ResponseRecorder } from '../http/response-recorder.ts';
import { registerProcess, type Pools } from './process-metrics.ts';

export interface ApiSources {
  readonly responses: Pick<ResponseRecorder, 'routes' | 'refusals'>;
  /** Charges waiting for a flush. */
  readonly waitingCharges: () => number;
  /** Whether charges can be taken. */
  readonly isReady: () => Promise<boolean>;
  readonly pools: Pools;
}

export function registerApi(registry: Registry, sources: ApiSources): void {
  const { responses, waitingCharges, isReady, pools } = sources;
  const registers = [registry];
  registerProcess(registry, pools);
  const requests = new Counter({
    name: 'farebox_requests_total',
    help: 'Requests, by method, route and outcome: success, the error code, or on_demand: a failure that a test amount asked for.',
    labelNames: ['method', 'route', 'outcome'],
    registers,
    collect() {
      requests.reset();
      for (const { method, route, succeeded, failed } of responses.routes) {
        requests.inc({ method, route, outcome: 'success' }, succeeded);
        for (const [code, count] of failed) requests.inc({ method, route, outcome: code }, count);
      }
    },
  });
  const refusals = new Counter({
    name: 'farebox_refusals_total',
    help: "Refused requests and charges of developers' keys, by developer, tool and error code.",
    labelNames: ['developer', 'tool', 'code'],
    registers,
    collect() {
      refusals.reset();
      for (const { developerId: developer, tool, code, count } of responses.refusals.list()) {
        refusals.inc({ developer, tool, code }, count);
      }
    },
  });
  const ready = new Gauge({
    name: 'farebox_ready',
    help: '1 if charges can be taken, as /readyz says, else 0.',
    registers,
    async collect() {
      ready.set((await isReady()) ? 1 : 0);
    },
  });
  const queue = new Gauge({
    name: 'farebox_charge_queue_length',
    help: 'Charges waiting for a flush.',
    registers,
    collect() {
      queue.set(waitingCharges());
    },
  });
}
