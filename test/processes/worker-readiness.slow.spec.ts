/** `/readyz` of a worker process: 200 only while it polls Temporal and Postgres takes writes. */
import assert from 'node:assert/strict';
import { startOwnPostgres, startOwnTemporal } from '../support/own-servers.ts';
import { choosePort } from '../support/ports.ts';
import {
  startWorkerProcess,
  testEnvironment,
  until,
  type ServerProcess,
} from '../support/stack.ts';

type OwnPostgres = Awaited<ReturnType<typeof startOwnPostgres>>;
type OwnTemporal = Awaited<ReturnType<typeof startOwnTemporal>>;

describe('a worker', () => {
  let postgres: OwnPostgres;
  let temporal: OwnTemporal;
  let worker: ServerProcess;
  let port: number;

  before(async () => {
    [postgres, temporal, port] = await Promise.all([
      startOwnPostgres(),
      startOwnTemporal(),
      choosePort(),
    ]);
    await temporal.crash();
  });
  after(async () => {
    await worker?.stop();
    await temporal?.remove();
    await postgres?.remove();
  });

  const statusOf = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      async (response) => {
        await response.body?.cancel();
        return response.status;
      },
      () => undefined,
    );
  const isReady = () => until(async () => (await statusOf('/readyz')) === 200);
  const isWaiting = async () => {
    await until(async () => (await statusOf('/readyz')) === 503);
    assert.equal(await statusOf('/healthz'), 200);
  };

  it('is ready only while it reaches both Temporal and Postgres', async () => {
    const starting = startWorkerProcess({
      env: {
        ...(await testEnvironment(postgres)),
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: 'default',
        STRIPE_API_BASE: 'http://127.0.0.1:9',
        STRIPE_SECRET_KEY: 'sk_test_none',
        STRIPE_WEBHOOK_SECRET: 'whsec_none',
        METRICS_PORT: String(port),
      },
    });
    starting.catch(() => {});
    await isWaiting();
    await temporal.restart();
    worker = await starting;
    await isReady();

    await temporal.crash();
    await isWaiting();
    await temporal.restart();
    await isReady();

    await postgres.crash();
    await isWaiting();
    await postgres.restart();
    await isReady();
  });
});
