/**
 * The backlog in the database. Every worker reports the same figures, so dashboards take the maximum over workers, not
 * the sum. While the database cannot be read, there are no figures and `farebox_backlog_readable` is 0.
 */
import { Gauge, type Registry } from '@prometheus-io/client';
import type { Backlog } from '../store/operators/backlog.ts';
import { registerProcess, type Pools } from './process-metrics.ts';

export interface WorkerSources {
  readonly pools: Pools;
  readonly readBacklog: () => Promise<Backlog>;
  /** Workflows that wait for a build without workers; undefined: not known yet. */
  readonly abandonedRuns: () => number | undefined;
}

/** All gauges of a scrape share one reading, as do simultaneous scrapes. */
const KEPT_MS = 1_000;

export function registerWorker(
  registry: Registry,
  { pools, readBacklog, abandonedRuns }: WorkerSources,
): void {
  registerProcess(registry, pools);
  const read = kept(() => readBacklog().catch(() => undefined));
  const registers = [registry];
  const readable = new Gauge({
    name: 'farebox_backlog_readable',
    help: '1 if the backlog could be read from Postgres, else 0.',
    registers,
    async collect() {
      readable.set((await read()) ? 1 : 0);
    },
  });
  /** A gauge with a value for each item of the backlog that `show` sets. */
  const list = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    show: (backlog: Backlog, gauge: Gauge<Label>) => void,
  ) => {
    const gauge = new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        const backlog = await read();
        gauge.reset();
        if (backlog) show(backlog, gauge);
      },
    });
  };
  list(
    'farebox_backlog',
    'Waiting work: top-ups by status, refunds, notices, webhooks, events, failing endpoints, differences, rows to roll up, and what is stuck.',
    ['what'],
    ({ waiting, stuck }, gauge) => {
      for (const { what, count } of [...waiting, stuck]) gauge.set({ what }, count);
    },
  );
  list(
    'farebox_backlog_oldest_age_seconds',
    'Age of the oldest waiting item; 0 if nothing waits.',
    ['what'],
    ({ waiting, stuck }, gauge) => {
      for (const { what, ageSeconds } of [...waiting, stuck]) gauge.set({ what }, ageSeconds);
    },
  );
  list(
    'farebox_top_ups',
    'Top-ups through Stripe by state, and by age: hour, day (requested in it) or older. Settled ones are not counted as older.',
    ['state', 'age'],
    ({ topUps }, gauge) => {
      for (const { state, age, count } of topUps) gauge.set({ state, age }, count);
    },
  );
  const reconciliation = new Gauge({
    name: 'farebox_reconciliation_age_seconds',
    help: 'Time since the last complete comparison with Stripe. Absent before the first one.',
    registers,
    async collect() {
      const seconds = (await read())?.reconciliationAgeSeconds ?? null;
      if (seconds === null) reconciliation.remove();
      else reconciliation.set(seconds);
    },
  });
  list(
    'farebox_doctor_findings',
    'Faults that the last run of each part of farebox doctor found. Absent before the first one.',
    ['part'],
    ({ examinations }, gauge) => {
      for (const { part, findings } of examinations) gauge.set({ part }, findings);
    },
  );
  list(
    'farebox_doctor_age_seconds',
    'Time since the last run of each part of farebox doctor. Absent before the first one.',
    ['part'],
    ({ examinations }, gauge) => {
      for (const { part, ageSeconds } of examinations) gauge.set({ part }, ageSeconds);
    },
  );
  const abandoned = new Gauge({
    name: 'farebox_abandoned_workflows',
    help: 'Workflows pinned to a build that no worker runs, when this worker last looked. Absent until then.',
    registers,
    collect() {
      const count = abandonedRuns();
      if (count === undefined) abandoned.remove();
      else abandoned.set(count);
    },
  });
}

function kept<T>(read: () => Promise<T>): () => Promise<T> {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    const nowMs = performance.now();
    if (!last || nowMs - last.atMs > KEPT_MS) last = { atMs: nowMs, value: read() };
    return last.value;
  };
}
