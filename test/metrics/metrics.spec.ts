/** The metrics of an API and of a worker; the dashboard and the alerts use no others. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Client } from 'pg';
import { parse } from 'yaml';
import { PARTS } from '../../src/commands/doctor.ts';
import type { Console } from '../../src/console/console.ts';
import { ERRORS } from '../../src/domain/errors.ts';
import { idsAt, wireId } from '../../src/domain/ids.ts';
import type { ApiPools } from '../../src/processes/api-pools.ts';
import { choosePort } from '../support/ports.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { call, charge } from '../support/http.ts';
import { openCheckout } from '../support/payments.ts';
import { testSideOf } from '../support/test-mode.ts';
import { startSimulator } from '../support/simulators.ts';
import {
  createTestDatabase,
  farebox,
  startApi,
  startWorker,
  testEnvironment,
  until,
  type Environment,
  type Server,
} from '../support/stack.ts';
import { headingsOf, read } from '../tree/sources.ts';

/** The value of each series, by name and labels as Prometheus writes them. */
type Scrape = ReadonlyMap<string, number>;

const requests = (outcome: string) =>
  `farebox_requests_total{method="POST",route="/v1/charges",outcome="${outcome}"}`;

const batches = (outcome: string) =>
  `farebox_requests_total{method="POST",route="/v1/charges/batch",outcome="${outcome}"}`;

describe('metrics', () => {
  let env: Environment;
  let api: Server;
  let ports: Readonly<Record<'api' | 'worker', number>>;
  let sql: Client;
  let account: TestAccount;
  const undo: (() => Promise<unknown>)[] = [];

  before(async () => {
    const database = await createTestDatabase();
    undo.push(() => database.drop());
    const simulator = await startSimulator();
    undo.push(() => simulator.stop());
    // A busy machine takes longer than the default of 10 s for the page of a checkout.
    const patient = { TOP_UP_ANSWER_MS: '60000' };
    env = { ...(await testEnvironment(database)), ...simulator.env, ...patient };
    ports = { api: await choosePort(), worker: await choosePort() };
    api = await startApi({ env: { ...env, METRICS_PORT: String(ports.api) } });
    undo.push(() => api.stop());
    const worker = await startWorker({ env: { ...env, METRICS_PORT: String(ports.worker) } });
    undo.push(() => worker.stop());
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    undo.push(() => sql.end());
    account = await createTestAccount(database.url, 10);
  });
  after(async () => {
    for (const step of undo.toReversed()) await step();
  });

  async function textOf(process: 'api' | 'worker'): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${ports[process]}/metrics`);
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    return response.text();
  }

  async function scrape(process: 'api' | 'worker'): Promise<Scrape> {
    const lines = (await textOf(process)).split('\n').filter((line) => /^[a-z]/.test(line));
    return new Map(
      lines.map((line) => {
        const [, series = '', value] = /^(.+) (\S+)$/.exec(line) ?? [];
        return [series, Number(value)];
      }),
    );
  }

  const examine = () =>
    farebox(['doctor', '--only', 'balances', '--json'], { env }).catch(
      ({ stdout }: { stdout: string }) => stdout,
    );
  const examined = async (what: 'findings' | 'age_seconds') =>
    (await scrape('worker')).get(`farebox_doctor_${what}{part="balances"}`);

  it('count requests by route and outcome, and refusals by developer, tool and code', async () => {
    assert.equal((await charge(api, account, { amount: 0.01 })).status, 201);
    assert.equal((await charge(api, account, { amount: 0.01 })).status, 201);
    assert.equal((await charge(api, account, { amount: 500 })).status, 402);
    assert.equal((await call(api, 'GET', '/v1/balance')).status, 401);
    const found = await scrape('api');
    assert.equal(found.get(requests('success')), 2);
    assert.equal(found.get(requests('insufficient_balance')), 1);
    assert.equal(
      found.get(
        'farebox_requests_total{method="GET",route="/v1/balance",outcome="invalid_api_key"}',
      ),
      1,
    );
    const { rows } = await sql.query<{ id: string }>(
      'select developer_id as id from farebox.accounts',
    );
    const developer = wireId('developer', rows[0]?.id ?? '');
    const labels = `developer="${developer}",tool="search",code="insufficient_balance"`;
    assert.equal(found.get(`farebox_refusals_total{${labels}}`), 1);
  });

  it('count the charges of a batch that fail on our side, although the batch succeeds', async () => {
    const { consumerKey: apiKey, developerKey: key } = account;
    const charges = [0.01, 500, 0.01].map((amount) => ({ apiKey, tool: 'search', amount }));
    const before = await scrape('api');
    await sql.query('begin');
    await sql.query('lock table farebox.consumers in access exclusive mode');
    const { status, body } = await call(api, 'POST', '/v1/charges/batch', {
      key,
      body: { charges },
    });
    await sql.query('rollback');
    assert.equal(status, 200);
    const { results } = body as { results: readonly { status: number }[] };
    assert.deepEqual(
      results.map((each) => each.status),
      [503, 503, 503],
    );
    const after = await scrape('api');
    const grew = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    assert.equal(grew(batches('success')), 1);
    assert.equal(grew(batches('service_unavailable')), 3);
    await until(async () =>
      /"level":40,[^\n]*"members":3,"msg":"members of a batch: service_unavailable"/.test(
        await readFile(api.logFile, 'utf8'),
      ),
    );
  });

  it('count the failures that test amounts ask for apart, and the log has no error for them', async () => {
    const test = await testSideOf(api, env['DATABASE_URL'] ?? '', account, 10);
    const { consumerKey: apiKey, developerKey: key } = test;
    const before = await scrape('api');
    const statuses = [0.9905, 0.990503].map(
      async (amount) => (await charge(api, test, { amount })).status,
    );
    assert.deepEqual(await Promise.all(statuses), [500, 503]);
    const charges = [0.9905, 0.990503].map((amount) => ({ apiKey, tool: 'search', amount }));
    assert.equal(
      (await call(api, 'POST', '/v1/charges/batch', { key, body: { charges } })).status,
      200,
    );
    const topUp = { key: apiKey, body: { amount: 503.01 } };
    assert.equal((await call(api, 'POST', '/v1/top-up', topUp)).status, 503);
    const after = await scrape('api');
    const grew = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const topUps = 'farebox_requests_total{method="POST",route="/v1/top-up",outcome="on_demand"}';
    assert.deepEqual([requests('on_demand'), batches('on_demand'), topUps].map(grew), [2, 2, 1]);
    const failures = [...after.keys()].filter((name) =>
      /outcome="(outcome_unknown|service_unavailable)"/.test(name),
    );
    assert.deepEqual(
      failures.filter((name) => grew(name) > 0),
      [],
    );
    assert.doesNotMatch(await readFile(api.logFile, 'utf8'), /"level":50/);
  });

  it('show the batches of charges: their size, their wait, and Postgres’s time', async () => {
    const before = await scrape('api');
    await Promise.all(Array.from({ length: 20 }, () => charge(api, account, { amount: 0.01 })));
    const after = await scrape('api');
    const grew = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    assert.equal(grew('farebox_charge_batch_size_sum'), 20);
    const flushes = grew('farebox_charge_batch_size_count');
    assert.ok(flushes >= 1 && flushes <= 20);
    assert.equal(grew('farebox_charge_batch_wait_seconds_count'), flushes);
    assert.equal(grew('farebox_charge_flush_seconds_count'), flushes);
    assert.ok(grew('farebox_charge_flush_seconds_sum') > 0);
    assert.equal(after.get('farebox_charge_queue_length'), 0);
  });

  it('show every pool of connections, and whether requests wait for one', async () => {
    for (const [process, pools] of [
      ['api', API_POOLS],
      ['worker', { activities: true }],
    ] as const) {
      const found = [...(await scrape(process)).keys()];
      const names = (series: RegExp) => found.flatMap((name) => series.exec(name)?.[1] ?? []);
      const all = Object.keys(pools).toSorted();
      assert.deepEqual(names(/^farebox_pool_waiting\{pool="(\w+)"\}$/).toSorted(), all);
      for (const state of ['acquired', 'idle']) {
        const series = new RegExp(`^farebox_pool_connections\\{pool="(\\w+)",state="${state}"\\}$`);
        assert.deepEqual(names(series).toSorted(), all);
      }
    }
  });

  it('show the connections of a pool and the lag of the event loop', async () => {
    const body = { email: 'nobody@example.com', password: 'not the password' };
    await call(api, 'POST', '/console/auth/sign-in/email', { body });
    for (const [process, pools] of [
      ['api', ['charges', 'lookUps', 'console', 'consoleCounts']],
      ['worker', ['activities']],
    ] as const) {
      const found = await scrape(process);
      assert.ok((found.get('nodejs_eventloop_lag_p99_seconds') ?? 0) > 0);
      for (const pool of pools) {
        const connections = (state: string) =>
          found.get(`farebox_pool_connections{pool="${pool}",state="${state}"}`) ?? Number.NaN;
        assert.ok(connections('acquired') + connections('idle') >= 1, pool);
        assert.equal(found.get(`farebox_pool_waiting{pool="${pool}"}`), 0);
      }
    }
  });

  it('show waiting work, and for how long it has waited', async () => {
    const before = await scrape('worker');
    assert.equal(before.get('farebox_backlog{what="top_ups_pending"}'), 0);
    assert.equal(before.get('farebox_backlog_oldest_age_seconds{what="outbox"}'), 0);
    await openCheckout(api, account, 5);
    // Due next year, so nobody takes them. The automatic top-up waits for the end of its month, and not for a worker.
    await sql.query(`
      insert into farebox.outbox (topic, subject_id, created_at, next_attempt_at) values
        ('auto_top_up', gen_random_uuid(), now() - interval '5 days', now() + interval '1 year'),
        ('grant', gen_random_uuid(), now() - interval '2 hours', now() + interval '1 year'),
        ('payment_reported', gen_random_uuid(), now() - interval '1 hour', now() + interval '1 year');
    `);
    const found = await until(async () => {
      const now = await scrape('worker');
      return now.get('farebox_backlog{what="webhooks"}') === 1 && now;
    });
    assert.equal(found.get('farebox_backlog{what="top_ups_pending"}'), 1);
    assert.ok((found.get('farebox_backlog_oldest_age_seconds{what="top_ups_pending"}') ?? 0) > 0);
    await sql.query('update farebox.top_ups set under_way_at = now()');
    const debited = await until(async () => {
      const now = await scrape('worker');
      return now.get('farebox_backlog_oldest_age_seconds{what="top_ups_pending"}') === 0 && now;
    });
    assert.equal(debited.get('farebox_backlog{what="top_ups_pending"}'), 1);
    assert.ok((found.get('farebox_backlog{what="outbox"}') ?? 0) >= 1);
    const ageOf = (what: string) =>
      found.get(`farebox_backlog_oldest_age_seconds{what="${what}"}`) ?? 0;
    assert.ok(ageOf('outbox') >= 7_200 && ageOf('outbox') < 7_500);
    assert.ok(ageOf('webhooks') >= 3_600 && ageOf('webhooks') < 3_900);
    // At the full hour, a roll-up takes the charges so far.
    await until(async () => {
      assert.equal((await charge(api, account, { amount: 0.01 })).status, 201);
      return ((await scrape('worker')).get('farebox_backlog{what="rollup"}') ?? 0) > 0;
    });
  });

  const countedTopUps = async () =>
    Object.fromEntries(
      [...(await scrape('worker'))].flatMap(([series, value]) => {
        const [, state, age] = /^farebox_top_ups\{state="(\w+)",age="(\w+)"\}$/.exec(series) ?? [];
        return state === undefined ? [] : [[`${state} ${age}`, value]];
      }),
    );

  it('count top-ups through Stripe by state and age, and the older ones only while they wait', async () => {
    const ends = [
      'completed',
      'expired',
      'failed',
      'partially_refunded',
      'refunded',
      'charged_back',
    ];
    const zero = Object.fromEntries([
      ...['pending', 'disputed'].flatMap((state) =>
        ['hour', 'day', 'older'].map((age) => [`${state} ${age}`, 0]),
      ),
      ...ends.flatMap((state) => ['hour', 'day'].map((age) => [`${state} ${age}`, 0])),
    ]);
    const { rows } = await sql.query<{ id: string }>(
      `select id from farebox.top_ups where status = 'pending'`,
    );
    assert.equal(rows.length, 1);
    await until(async () => (await countedTopUps())['pending hour'] === 1);
    const before = await countedTopUps();
    assert.deepEqual(before, { ...zero, 'pending hour': 1 });
    const [{ id } = { id: '' }] = rows;
    let copies = 0;
    const copy = (state: string, hours: number, method = 'checkout') =>
      sql.query(
        `insert into farebox.top_ups
           select (jsonb_populate_record(t, jsonb_build_object(
             'id', $2::text, 'idempotency_key', $2::text, 'status', $3::text, 'method', $4::text,
             'session_id', null, 'payment_intent_id', null, 'created_at', now() - $5 * interval '1 hour'))).*
         from farebox.top_ups t where id = $1`,
        [id, idsAt(Date.now() - hours * 3_600_000)(copies++, id, id), state, method, hours],
      );
    await copy('failed', 0.5);
    await copy('failed', 2);
    await copy('completed', 23);
    await copy('completed', 0.1, 'manual');
    await copy('completed', 30);
    await copy('failed', 30);
    await copy('pending', 30);
    await copy('disputed', 24 * 39);
    await copy('disputed', 24 * 100);
    const expected = {
      ...before,
      'failed hour': 1,
      'failed day': 1,
      'completed day': 1,
      'pending older': 1,
      'disputed older': 2,
    };
    await until(async () => (await countedTopUps())['disputed older'] === 2);
    assert.deepEqual(await countedTopUps(), expected);
    await sql.query(`delete from farebox.top_ups where id <> $1`, [id]);
  });

  it('show the age of the last reconciliation once there was one', async () => {
    assert.equal((await scrape('worker')).get('farebox_reconciliation_age_seconds'), undefined);
    await sql.query(
      `insert into farebox.reconciliation (walked_until) values (now() - interval '10 minutes')`,
    );
    const age = await until(async () =>
      (await scrape('worker')).get('farebox_reconciliation_age_seconds'),
    );
    assert.ok(age >= 600 && age < 900);
  });

  it('show what each part of doctor found when it last ran, and when that was', async () => {
    assert.equal(await examined('findings'), undefined);
    await examine();
    assert.equal(await until(async () => (await examined('findings')) === 0), true);
    await sql.query(`update farebox.consumers set credited_micros = credited_micros + 1`);
    await examine();
    await until(async () => ((await examined('findings')) ?? 0) > 0);
    await sql.query(`update farebox.consumers set credited_micros = credited_micros - 1`);
    await examine();
    await until(async () => (await examined('findings')) === 0);
    await sql.query(`update farebox.examinations set ended_at = now() - interval '1 hour'`);
    await until(async () => ((await examined('age_seconds')) ?? 0) >= 3_600);
    assert.ok(((await examined('age_seconds')) ?? 0) < 3_900);
  });

  it('report an unreadable backlog in place of old figures', async () => {
    await sql.query('alter table farebox.outbox rename to away');
    const found = await until(async () => {
      const now = await scrape('worker');
      return now.get('farebox_backlog_readable') === 0 && now;
    });
    assert.deepEqual(
      [...found.keys()].filter((series) =>
        /^farebox_(backlog\{|backlog_oldest|top_ups|reconc|doctor)/.test(series),
      ),
      [],
    );
    await sql.query('alter table farebox.away rename to outbox');
    await until(async () => (await scrape('worker')).get('farebox_backlog_readable') === 1);
  });

  it('are not on the port of the API; their own port adds only health checks', async () => {
    assert.equal((await call(api, 'GET', '/metrics')).status, 404);
    for (const port of Object.values(ports)) {
      const statusOf = async (path: string, method = 'GET') =>
        (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status;
      assert.deepEqual(
        [
          await statusOf('/healthz'),
          await statusOf('/'),
          await statusOf('/v1/charges'),
          await statusOf('/metrics', 'POST'),
        ],
        [200, 404, 404, 404],
      );
    }
    assert.equal((await fetch(`http://127.0.0.1:${ports.api}/readyz`)).status, 404);
    await until(async () => (await fetch(`http://127.0.0.1:${ports.worker}/readyz`)).ok);
  });

  it('include every name, label and value that the dashboard and the alerts use', async () => {
    // A refusal and an examination, because a counter or list without entries shows no labels.
    assert.equal((await charge(api, account, { amount: 500 })).status, 402);
    await examine();
    await until(async () => (await examined('findings')) !== undefined);
    const texts = [await textOf('api'), await textOf('worker')].join('\n');
    const names = new Set(
      [...texts.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
      ),
    );
    const values = valuesIn(texts);
    const asked = [...dashboardQueries(), ...alertRules().map(({ expr }) => expr)];
    assert.ok(asked.length > 25);
    for (const query of asked) {
      const used = [...query.matchAll(/\b(?:farebox|nodejs|process)_[a-z0-9_]+/g)];
      if (!query.startsWith('up{')) assert.ok(used.length > 0, query);
      for (const [name] of used) assert.ok(names.has(name), `${name} in ${query}`);
      for (const { name, label, value } of labelsIn(query)) {
        const known = values.get(`${name} ${label}`);
        assert.ok(known, `${name} has no label ${label}: ${query}`);
        const isKnown = value === undefined || known.has(value) || VALUES[label]?.has(value);
        assert.ok(isKnown, `${label} is never ${value}: ${query}`);
      }
    }
    const ours = [...names].filter((name) => /^farebox_.*(?<!_sum|_count)$/.test(name));
    const all = asked.join('\n');
    assert.deepEqual(
      ours.filter((name) => !all.includes(name)),
      [],
      'every metric of ours is on the dashboard',
    );
  });
});

describe('deploy/alerts.yml', () => {
  it('has a severity, a summary and a section of the documentation for each alert', () => {
    const docs = read('docs/operations.md');
    for (const { alert, labels, annotations } of alertRules()) {
      const [page = '', heading = ''] = annotations.runbook.split('#');
      assert.ok(headingsOf(page).has(heading), `${alert}: ${annotations.runbook}`);
      assert.match(labels.severity, /^(page|ticket)$/, alert);
      assert.ok(annotations.summary.length > 10, alert);
      assert.ok(docs.includes(`\`${alert}\``), `docs/operations.md has no ${alert}`);
    }
  });
});

/** The type names every pool of an API, so a pool that is added must be added here. */
type ApiPool = Exclude<keyof ApiPools, 'database'> | 'reads' | keyof Console['pools'];
const API_POOLS: Readonly<Record<ApiPool, true>> = {
  lookUps: true,
  reads: true,
  invocations: true,
  charges: true,
  holds: true,
  leases: true,
  console: true,
  consoleCounts: true,
};

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

/** Values that the processes of this test do not have. */
const VALUES: Readonly<Record<string, ReadonlySet<string>>> = {
  outcome: new Set(Object.keys(ERRORS)),
  part: new Set(PARTS),
};
/** Prometheus adds them. */
const ADDED = new Set(['job', 'instance']);

/** The values of each label, by metric and label. */
function valuesIn(texts: string): ReadonlyMap<string, ReadonlySet<string>> {
  const values = new Map<string, Set<string>>();
  for (const [, name, labels = ''] of texts.matchAll(/^(\w+)\{(.+)\} \S+$/gm)) {
    for (const [, label, value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      const known = values.get(`${name} ${label}`) ?? new Set();
      values.set(`${name} ${label}`, known.add(value));
    }
  }
  return values;
}

interface UsedLabel {
  readonly name: string;
  readonly label: string;
  /** Undefined where the query groups by the label. */
  readonly value?: string;
}

function labelsIn(query: string): UsedLabel[] {
  const selectors = [...query.matchAll(/\b((?:farebox|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)];
  const selected = selectors.flatMap(([, name = '', labels = '']) =>
    [...labels.matchAll(/(\w+)(?:=|!=|=~)"([^"]*)"/g)].flatMap(([, label = '', text = '']) =>
      text.split('|').map((value) => ({ name, label, value })),
    ),
  );
  const groups = [...query.matchAll(/\bby \(([^)]*)\)/g)];
  const grouped = groups.flatMap(([, labels = '']) =>
    labels.split(', ').flatMap((label) => selectors.map(([, name = '']) => ({ name, label }))),
  );
  return [...selected, ...grouped].filter(({ label }) => !ADDED.has(label));
}

function alertRules(): AlertRule[] {
  const { groups } = parse(read('deploy/alerts.yml')) as {
    groups: { readonly rules: AlertRule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

function dashboardQueries(): string[] {
  const { panels } = JSON.parse(read('deploy/grafana-dashboard.json')) as {
    panels: { readonly targets: { readonly expr: string }[] }[];
  };
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}
