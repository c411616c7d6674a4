/** The metric that says whether an API process can take charges. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { choosePort } from '../support/ports.ts';
import { startSimulator } from '../support/simulators.ts';
import {
  asSuperuser,
  createTestDatabase,
  startApi,
  testEnvironment,
  until,
} from '../support/stack.ts';

describe('farebox_ready', () => {
  const undo: (() => Promise<unknown>)[] = [];
  let admin: Client;
  let metricsPort: number;

  before(async () => {
    const database = await createTestDatabase();
    undo.push(() => database.drop());
    const simulator = await startSimulator();
    undo.push(() => simulator.stop());
    metricsPort = await choosePort();
    const env = { ...(await testEnvironment(database)), ...simulator.env };
    const api = await startApi({ env: { ...env, METRICS_PORT: String(metricsPort) } });
    undo.push(() => api.stop());
    admin = new Client({ connectionString: asSuperuser(database.url) });
    await admin.connect();
    undo.push(() => admin.end());
  });
  after(async () => {
    for (const step of undo.toReversed()) await step();
  });

  async function isReady(): Promise<string | undefined> {
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    return /^farebox_ready (\d)$/m.exec(await response.text())?.[1];
  }

  /** Settings of a database hold for new connections. */
  async function setReadOnly(value: 'on' | 'off'): Promise<void> {
    await admin.query(`
      do $$ begin
        execute format('alter database %I set default_transaction_read_only = ${value}', current_database());
      end $$;
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid();
    `);
  }

  it('is 1 while charges can be taken, and 0 while Postgres only reads', async () => {
    assert.equal(await isReady(), '1');
    await setReadOnly('on');
    await until(async () => (await isReady()) === '0');
    await setReadOnly('off');
    await until(async () => (await isReady()) === '1');
  });
});
