/**
 * Payloads that Temporal cannot read: what its histories contain with and without keys, and who can still
 * read them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { Payload } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { readTemporalConfig } from '../../src/config.ts';
import { ConfigError } from '../../src/read-setting.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { serveCodec, type CodecServer } from '../../src/temporal/codec-server.ts';
import { dataConverterOf, payloadCodec } from '../../src/temporal/payload-codec.ts';
import { installRuntime } from '../../src/temporal/runtime.ts';
import { topUpWorkflowId } from '../../src/temporal/start-top-up.ts';
import { workflowBundle } from '../../src/temporal/workflow-bundle.ts';
import { aloneInNamespace, until } from '../support/stack.ts';
import { openTopUpHarness, QUICK_RETRIES, type Consumer } from '../support/top-up-harness.ts';

const UI = 'http://temporal-ui.example:8080';
const key = () => randomBytes(32).toString('hex');
const keysOf = (text: string) => {
  const { payloadKeys } = readTemporalConfig({
    TEMPORAL_ADDRESS: 'x:1',
    TEMPORAL_PAYLOAD_KEYS: text,
  });
  assert.ok(payloadKeys);
  return payloadKeys;
};

const codecOf = (text: string) => payloadCodec(keysOf(text));

describe('payloads with TEMPORAL_PAYLOAD_KEYS', () => {
  const text = `1:${key()}`;
  const keys = keysOf(text);
  let harness: Awaited<ReturnType<typeof openTopUpHarness>>;
  let consumer: Consumer;
  let temporal: TemporalClient;
  let codec: CodecServer;

  before(async () => {
    installRuntime(pino({ level: 'silent' }));
    harness = await openTopUpHarness({ ...(await aloneInNamespace()), ...QUICK_RETRIES });
    consumer = await harness.newConsumer();
    temporal = createTemporalClient({ ...harness.config.temporal, payloadKeys: keys });
    codec = await serveCodec(payloadCodec(keys), { port: 0, uiOrigin: UI });
  });
  after(async () => {
    await codec?.close();
    await temporal?.close();
    await harness?.close();
  });

  /** Every text in a run's history, as Temporal stores it. */
  async function storedBy(id: string): Promise<string> {
    const { history } = await temporal.client.workflowService.getWorkflowExecutionHistory({
      namespace: harness.config.temporal.namespace,
      execution: { workflowId: topUpWorkflowId(temporal, id) },
    });
    return textsIn(history).join('\n');
  }

  const show = async (id: string, ...options: readonly string[]) => {
    const { address, namespace } = harness.config.temporal;
    const { stdout } = await promisify(execFile)(process.env['TEST_TEMPORAL_PROGRAM'] ?? '', [
      'workflow',
      'show',
      '--detailed',
      `--workflow-id=${topUpWorkflowId(temporal, id)}`,
      `--address=${address}`,
      `--namespace=${namespace}`,
      ...options,
    ]);
    return stdout;
  };

  it('are in no history, the URLs of sessions, summaries and failures included', async () => {
    const plain = await harness.startWorker();
    const before = await harness.checkout(consumer, 11);
    // The row has the URL before Temporal has the step's result.
    const readable = await until(async () => {
      const stored = await storedBy(before.id);
      return stored.includes(before.sessionUrl ?? '-') && stored;
    });
    assert.ok(readable.includes('Claim the top-up'));
    await plain.stop();

    await harness.startWorker({ TEMPORAL_PAYLOAD_KEYS: text });
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/checkout/sessions',
      kind: 'error',
      status: 400,
      times: 1_000,
    });
    // Nothing was requested while Temporal does not answer in time.
    const requested = await until(async () => {
      const result = await harness.requestOver(temporal, consumer, 'checkout', 12, 'sealed');
      return result.kind !== 'unavailable' && result;
    });
    assert.ok(requested.kind === 'pending', requested.kind);
    const { topUp } = requested;
    const handle = temporal.client.workflow.getHandle(topUpWorkflowId(temporal, topUp.id));
    await until(async () =>
      textsIn((await handle.describe()).raw.pendingActivities).includes('Encoded failure'),
    );
    await harness.forgetFaults();
    const { sessionUrl } = await until(async () => {
      const now = await harness.topUp(topUp.id);
      return now.sessionUrl !== null && now;
    });
    const decoded = () => show(topUp.id, `--codec-endpoint=${codec.url}`);
    await until(async () => (await decoded()).includes(sessionUrl ?? '-'));
    assert.ok(!(await show(topUp.id)).includes(sessionUrl ?? '-'));
    const sealed = await storedBy(topUp.id);
    assert.ok(sealed.includes('binary/encrypted'));
    for (const word of [sessionUrl ?? '-', 'Claim the top-up', topUp.id, 'Stripe']) {
      assert.ok(!sealed.replaceAll(topUpWorkflowId(temporal, topUp.id), '').includes(word), word);
    }

    // A run that began without keys ends with them.
    await harness.pay(before.sessionUrl);
    await harness.statusBecomes(before, 'completed');
    await harness.pay(sessionUrl);
    await harness.statusBecomes(topUp, 'completed');

    assert.equal(((await handle.result()) as { status: string }).status, 'completed');
    await Worker.runReplayHistory(
      {
        workflowBundle: await workflowBundle({ encryptsFailures: true }),
        dataConverter: dataConverterOf(keys)!,
      },
      await handle.fetchHistory(),
    );
  });

  it('are decrypted for nobody without the URL, and for pages of the Temporal UI alone', async () => {
    const [payload] = await payloadCodec(keys).encode([json('secret')]);
    const body = JSON.stringify({
      payloads: [
        {
          metadata: Object.fromEntries(
            Object.entries(payload?.metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)]),
          ),
          data: base64(payload?.data ?? new Uint8Array()),
        },
      ],
    });
    const ask = (url: string, origin = UI, method = 'POST') =>
      fetch(url, { method, headers: { origin }, ...(method === 'POST' && { body }) });
    const answer = await ask(`${codec.url}/decode`);
    const { payloads } = (await answer.json()) as { payloads: { data: string }[] };
    assert.equal(Buffer.from(payloads[0]?.data ?? '', 'base64').toString(), '"secret"');
    assert.equal(answer.headers.get('access-control-allow-origin'), UI);
    const preflight = await ask(`${codec.url}/decode`, UI, 'OPTIONS');
    assert.equal(preflight.headers.get('access-control-allow-origin'), UI);
    const foreign = await ask(`${codec.url}/decode`, 'https://evil.example');
    assert.equal(foreign.headers.get('access-control-allow-origin'), null);
    const { origin } = new URL(codec.url);
    for (const path of ['/decode', '/another-token/decode', '/']) {
      assert.equal((await ask(origin + path)).status, 404);
    }
    const broken = await fetch(`${codec.url}/decode`, { method: 'POST', body: '{' });
    assert.equal(broken.status, 400);
  });
});

describe('the payload codec', () => {
  const [first, second] = [key(), key()];
  it('reads what an earlier key encrypted, as long as that key is listed', async () => {
    const given = json('hello');
    const [old] = await codecOf(`1:${first}`).encode([given]);
    const [read] = await codecOf(`2:${second},1:${first}`).decode([old!]);
    assert.deepEqual(plain(read!), plain(given));
    const [renewed] = await codecOf(`2:${second},1:${first}`).encode([given]);
    assert.deepEqual(plain((await codecOf(`2:${second}`).decode([renewed!]))[0]!), plain(given));
    await assert.rejects(codecOf(`2:${second}`).decode([old!]), /does not have key 1/);
  });

  it('leaves payloads alone that are not encrypted', async () => {
    assert.deepEqual(await codecOf(`1:${first}`).decode([json('hello')]), [json('hello')]);
  });

  it('encrypts the same payload differently each time', async () => {
    const [a, b] = await codecOf(`1:${first}`).encode([json('hello'), json('hello')]);
    assert.notDeepEqual(a?.data, b?.data);
  });

  it('refuses what was changed, or was encrypted with another key of the same number', async () => {
    const [sealed] = await codecOf(`1:${first}`).encode([json('hello')]);
    const { data, metadata } = sealed!;
    for (const at of [0, 12, data!.length - 1]) {
      const changed = Buffer.from(data!);
      changed[at] = (changed[at] ?? 0) ^ 1;
      await assert.rejects(codecOf(`1:${first}`).decode([{ metadata: metadata!, data: changed }]));
    }
    const relabeled = { ...metadata, 'plain-encoding': Buffer.from('binary/plain') };
    await assert.rejects(codecOf(`1:${first}`).decode([{ metadata: relabeled, data: data! }]));
    await assert.rejects(codecOf(`1:${second}`).decode([sealed!]));
  });

  it('refuses keys that are not keys', () => {
    for (const text of ['secret', first, `1:${first}0`, `1:${first},`, `1:${first},1:${second}`]) {
      assert.throws(() => keysOf(text), ConfigError, text);
    }
  });
});

function json(value: string): Payload {
  return {
    metadata: { encoding: Buffer.from('json/plain') },
    data: Buffer.from(JSON.stringify(value)),
  };
}

function plain({ metadata, data }: Payload): unknown {
  const texts = Object.entries(metadata ?? {}).map(([name, bytes]) => [
    name,
    Buffer.from(bytes).toString(),
  ]);
  return [Object.fromEntries(texts), Buffer.from(data ?? []).toString()];
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
