/** Traces of real processes, as a collector receives them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { call, charge } from '../support/http.ts';
import {
  startApiProcess,
  startProcesses,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';
import {
  startTraceReceiver,
  type ReceivedSpan,
  type TraceReceiver,
} from '../support/trace-receiver.ts';

const id = (bytes: number) => randomBytes(bytes).toString('hex');

/** A new trace id with a header for a request; `flags` as in `traceparent`. */
function newTrace(flags = '01') {
  const traceId = id(16);
  const spanId = id(8);
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

/** The flushes that decided the request: its own, or one of another request of its batch, which it links. */
function flushesOf(
  { spanId, links }: ReceivedSpan,
  flushes: readonly ReceivedSpan[],
): ReceivedSpan[] {
  return flushes.filter((flush) => flush.parentId === spanId || links.includes(flush.spanId));
}

describe('traces', () => {
  let receiver: TraceReceiver;
  let stack: Stack<ServerProcess>;
  let account: TestAccount;

  before(async () => {
    receiver = await startTraceReceiver();
    stack = await startProcesses({
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=opensesame',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      },
    });
    account = await createAccount(stack.env, 100);
  });
  after(async () => {
    await stack?.stop();
    await receiver?.stop();
  });

  const spansOf = (traceId: string) => receiver.spans().filter((span) => span.traceId === traceId);

  /** The span and what led to it, the span first. */
  function pathTo(span: ReceivedSpan): string[] {
    const parent = spansOf(span.traceId).find(({ spanId }) => spanId === span.parentId);
    return [`${span.service} ${span.name}`, ...(parent ? pathTo(parent) : [])];
  }

  it('follow a top-up from the request through its workflow to the call of Stripe and the credit', async () => {
    // On a busy machine a top-up may take longer than a request waits.
    const { traceId, spanId, answer } = await until(async () => {
      const trace = newTrace();
      const now = await call(stack.api, 'POST', '/v1/top-up', {
        key: account.consumerKey,
        body: { amount: 12.34 },
        headers: trace.headers,
      });
      return now.status === 201 && { ...trace, answer: now };
    });
    const find = (name: string) =>
      until(() => spansOf(traceId).find((span) => span.name === name), {});
    const request = await find('POST /v1/top-up');
    assert.equal(request.parentId, spanId);
    assert.equal(request.attributes['http.response.status_code'], 201);
    assert.equal(request.attributes['farebox.request_id'], answer.headers.get('x-request-id'));
    await find('RunActivity:creditTopUp');
    const paid = await find('POST /v1/payment_intents');
    assert.deepEqual(pathTo(paid), [
      'farebox-worker POST /v1/payment_intents',
      'farebox-worker RunActivity:chargeSavedCard',
      'farebox-api UpdateWithStartWorkflow:topUp',
      'farebox-api POST /v1/top-up',
    ]);
    const credit = await until(() =>
      spansOf(traceId).find(
        (span) =>
          span.service === 'farebox-worker' &&
          pathTo(span)[1] === 'farebox-worker RunActivity:creditTopUp' &&
          span.attributes['db.system.name'] === 'postgresql',
      ),
    );
    assert.match(String(credit.attributes['db.query.text']), /farebox\./);
  });

  it("lead from each charge to the statement that decided it, in the caller's trace", async () => {
    const { traceId, headers } = newTrace();
    assert.equal((await charge(stack.api, account, {}, headers)).status, 201);
    // A span is sent when it has ended: the statement's before those that led to it.
    const path = await until(() => {
      const statement = spansOf(traceId).find(
        ({ name }) => name === 'select farebox.post_fitting_groups_2',
      );
      const found = statement ? pathTo(statement) : [];
      return found.length === 3 && found;
    });
    assert.deepEqual(path, [
      'farebox-api select farebox.post_fitting_groups_2',
      'farebox-api flush charges',
      'farebox-api POST /v1/charges',
    ]);
  });

  it('link every request of a batch with the flush that decided it', async () => {
    const traces = Array.from({ length: 40 }, () => newTrace());
    await Promise.all(
      traces.map(async ({ headers }) => {
        assert.equal((await charge(stack.api, account, {}, headers)).status, 201);
      }),
    );
    const requests = await until(() => {
      const found = traces.map(({ traceId }) =>
        spansOf(traceId).find(({ name }) => name === 'POST /v1/charges'),
      );
      return found.every((span) => span !== undefined) && found;
    });
    const flushes = await until(() => {
      const found = receiver.spans().filter(({ name }) => name === 'flush charges');
      return requests.every((request) => flushesOf(request, found).length > 0) && found;
    });
    const sizes = flushes.map(({ attributes }) => Number(attributes['farebox.batch.size']));
    assert.ok(Math.max(...sizes) > 1, `no batch had two charges: ${sizes.join()}`);
    for (const request of requests) {
      const [flush, ...others] = flushesOf(request, flushes);
      assert.deepEqual(others, []);
      assert.ok(flush?.parentId === request.spanId || flush?.links.includes(request.spanId));
    }
  });

  it('name refusals by their code, and the routes of paths, not the paths', async () => {
    const { traceId, headers } = newTrace();
    const { status } = await charge(stack.api, account, { amount: 5_000 }, headers);
    assert.equal(status, 402);
    const secret = 'fare_con_0123456789';
    await call(stack.api, 'GET', `/v1/charges/ch_${secret}`, {
      key: account.developerKey,
      headers,
    });
    const refused = await until(() =>
      spansOf(traceId).find(({ name }) => name === 'POST /v1/charges'),
    );
    assert.equal(refused.attributes['error.type'], 'insufficient_balance');
    assert.equal(refused.isFailed, false);
    const missed = await until(() =>
      spansOf(traceId).find(({ name }) => name === 'GET /v1/charges/:id'),
    );
    assert.equal(JSON.stringify(missed).includes(secret), false);
  });

  it('contain no key, no text of a caller and no value of a statement', async () => {
    const text = `private ${id(8)}`;
    const tracestate = `caller=private-${id(8)}`;
    const { traceId, headers } = newTrace();
    const body = { metadata: { note: text }, idempotencyKey: text };
    await charge(
      stack.api,
      account,
      { metadata: body.metadata },
      { ...headers, 'idempotency-key': text, tracestate },
    );
    await until(() => spansOf(traceId).find(({ name }) => name === 'POST /v1/charges'));
    const everything = receiver.bodies.join('\n');
    const secrets = [
      text,
      tracestate,
      account.consumerKey,
      account.developerKey,
      account.email,
      stack.env['MASTER_SECRET'],
      stack.env['STRIPE_SECRET_KEY'],
      stack.env['STRIPE_WEBHOOK_SECRET'],
      new URL(stack.env['DATABASE_URL'] ?? '').password || undefined,
    ];
    for (const secret of secrets) {
      if (secret !== undefined) assert.equal(everything.includes(secret), false, secret);
    }
  });

  it('follow the decision of a caller not to record', async () => {
    const { traceId, headers } = newTrace('00');
    assert.equal((await charge(stack.api, account, {}, headers)).status, 201);
    const later = newTrace();
    assert.equal((await charge(stack.api, account, {}, later.headers)).status, 201);
    await until(() => spansOf(later.traceId).length > 0);
    assert.deepEqual(spansOf(traceId), []);
  });

  it("write the trace's id beside the request's in the log", async () => {
    const { traceId, headers } = newTrace();
    const answer = await charge(stack.api, account, { amount: 5_000 }, headers);
    const lines = readFileSync(stack.api.logFile, 'utf8').split('\n');
    const line = lines.find((each) => each.includes(answer.headers.get('x-request-id') ?? '-'));
    assert.equal((JSON.parse(line ?? '{}') as { traceId?: string }).traceId, traceId);
  });

  it('go to the endpoint with its headers and the attributes of the settings', () => {
    const [first] = receiver.requests;
    assert.equal(first?.url, '/v1/traces');
    assert.equal(first?.headers['x-collector-key'], 'opensesame');
    assert.match(receiver.bodies[0] ?? '', /deployment\.environment\.name/);
  });

  it('are not made when they are off', async () => {
    const quiet = await startTraceReceiver();
    const api = await startApiProcess({
      env: {
        ...stack.env,
        PORT: undefined,
        BASE_URL: undefined,
        OTEL_EXPORTER_OTLP_ENDPOINT: quiet.url,
        OTEL_TRACES_EXPORTER: 'none',
      },
    });
    try {
      assert.equal((await charge(api, account, {}, newTrace().headers)).status, 201);
      await api.stop();
      assert.deepEqual(quiet.requests, []);
      assert.equal(readFileSync(api.logFile, 'utf8').includes('traceId'), false);
    } finally {
      await api.stop();
      await quiet.stop();
    }
  });

  it('that cannot be sent leave one line a minute in the log', async () => {
    const refusing = await startTraceReceiver({ status: 400 });
    const api = await startApiProcess({
      env: {
        ...stack.env,
        PORT: undefined,
        BASE_URL: undefined,
        OTEL_EXPORTER_OTLP_ENDPOINT: refusing.url,
      },
    });
    try {
      await until(async () => {
        assert.equal((await charge(api, account)).status, 201);
        return refusing.requests.length >= 3;
      });
      await api.stop();
      const lines = readFileSync(api.logFile, 'utf8').split('\n');
      assert.equal(lines.filter((line) => line.includes('traces could not be sent')).length, 1);
    } finally {
      await api.stop();
      await refusing.stop();
    }
  });

  it('delay neither charges nor the end of a process while their receiver hangs', async () => {
    const hung = await startTraceReceiver({ status: null });
    const api = await startApiProcess({
      env: {
        ...stack.env,
        PORT: undefined,
        BASE_URL: undefined,
        OTEL_EXPORTER_OTLP_ENDPOINT: hung.url,
      },
    });
    try {
      assert.equal((await charge(api, account)).status, 201);
      await until(() => hung.requests.length > 0);
      assert.equal((await charge(api, account)).status, 201);
      api.kill('SIGTERM');
      assert.equal(await api.exited, 'exit code 0');
    } finally {
      await api.stop();
      await hung.stop();
    }
  });
});
