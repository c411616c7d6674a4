/** The client in runtimes other than Node: every call is answered, and each is paid once. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { read } from '../support/http.ts';
import { CountingProxy } from './counting-proxy.ts';
import { runBun, runDeno } from './other-runtimes.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const CALLS = 40;

/** The conditions of a bundle decide which files of the client it contains. */
const BUNDLES = {
  'conditions of Workers': ['workerd', 'worker', 'browser'],
  'conditions of Node': ['node'],
};

describe('client: in other runtimes', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(1);
  });
  after(() => api?.stop());

  const earned = async () => {
    const { byTool } = await read<{ byTool: Record<string, number> }>(
      `${api.url}/v1/earnings`,
      account.developerKey,
    );
    return byTool;
  };

  async function startWorker(
    conditions: string[],
    entry = join(import.meta.dirname, 'worker.ts'),
    compatibility = { date: '2026-07-01', flags: ['nodejs_compat'] },
    options: { handleRuntimeStdio?: (...streams: [Readable, Readable]) => void } = {},
  ): Promise<Miniflare> {
    const { outputFiles } = await build({
      entryPoints: [entry],
      bundle: true,
      format: 'esm',
      conditions,
      external: ['node:*'],
      write: false,
    });
    return new Miniflare({
      modules: true,
      script: outputFiles[0]?.text ?? '',
      compatibilityDate: compatibility.date,
      compatibilityFlags: compatibility.flags,
      ...options,
      bindings: { FAREBOX_URL: api.url, FAREBOX_SECRET_KEY: account.developerKey },
    });
  }

  for (const [name, conditions] of Object.entries(BUNDLES)) {
    it(`answers 40 requests at once to a Worker bundled with the ${name}, each paid once`, async () => {
      const worker = await startWorker(conditions);
      try {
        const url = await worker.ready;
        const headers = { 'x-service-key': account.consumerKey };
        const ask = async (path: string) => {
          const response = await fetch(new URL(path, url), { headers });
          assert.equal(response.status, 200, await response.clone().text());
          return (await response.json()) as { id: string; receipt: string; valid: boolean };
        };
        const charges = await Promise.all(Array.from({ length: CALLS }, () => ask('/charge')));
        assert.equal(new Set(charges.map(({ id }) => id)).size, CALLS);
        assert.deepEqual(await earned(), { edge: 0.4 });
        const checks = await Promise.all(
          charges.map(({ receipt }) => ask(`/verify?receipt=${receipt}`)),
        );
        assert.ok(checks.every(({ valid }) => valid));
      } finally {
        await worker.dispose();
      }
    });
  }

  it('serves the Hono example in a Worker with the configuration beside it', async () => {
    const config = JSON.parse(await readFile(join(EXAMPLES, 'wrangler.json'), 'utf8')) as {
      main: string;
      compatibility_date: string;
      compatibility_flags: string[];
    };
    const worker = await startWorker(
      BUNDLES['conditions of Workers'],
      join(EXAMPLES, config.main),
      { date: config.compatibility_date, flags: config.compatibility_flags },
    );
    try {
      const headers = { 'x-service-key': account.consumerKey };
      const url = new URL('/lorem?words=250', await worker.ready);
      const response = await fetch(url, { headers });
      const text = await response.text();
      assert.deepEqual([response.status, text.split(' ').length], [200, 250], text);
      assert.deepEqual(await earned(), { lorem: 0.025 });
    } finally {
      await worker.dispose();
    }
  });

  it('refuses leases in a Worker, which would not settle them', async () => {
    for (const conditions of Object.values(BUNDLES)) {
      const worker = await startWorker(conditions);
      try {
        const response = await fetch(new URL('/lease', await worker.ready));
        const { message } = (await response.json()) as { message: string };
        assert.match(message, /^Farebox: an edge runtime ends timers/);
      } finally {
        await worker.dispose();
      }
    }
  });

  for (const [name, conditions] of Object.entries(BUNDLES)) {
    it(`prints the warning of a call that cannot be billed, in a Worker bundled with the ${name}`, async () => {
      const { promise: printed, resolve } = Promise.withResolvers<string>();
      let output = '';
      const listen = (data: Buffer) => {
        output += String(data);
        if (output.includes('requestId')) resolve(output);
      };
      const handleRuntimeStdio = (...streams: [Readable, Readable]) => {
        for (const stream of streams) stream.on('data', listen);
      };
      const worker = await startWorker(conditions, undefined, undefined, { handleRuntimeStdio });
      try {
        const headers = { 'x-service-key': account.consumerKey };
        const response = await fetch(new URL('/unbilled', await worker.ready), { headers });
        assert.equal(response.status, 500);
        assert.match(await printed, /FareboxWarning: A call of "edge" cannot be billed/);
      } finally {
        await worker.dispose();
      }
    });
  }

  const script = join(import.meta.dirname, 'concurrent-charges.ts');

  for (const [name, run] of Object.entries({ Bun: runBun, Deno: runDeno })) {
    it(`charges under ${name}, where simultaneous calls share a request`, async () => {
      await using proxy = await CountingProxy.start(api.url);
      const { stdout } = await run(script, {
        env: {
          FAREBOX_URL: proxy.url,
          FAREBOX_SECRET_KEY: account.developerKey,
          CONSUMER_KEY: account.consumerKey,
        },
      });
      const { ids, valid } = JSON.parse(stdout) as { ids: string[]; valid: number };
      assert.equal(new Set(ids).size, CALLS);
      assert.equal(valid, CALLS);
      assert.deepEqual(await earned(), { elsewhere: 0.4 });
      assert.ok(proxy.requests.length < CALLS, proxy.requests.join());
    });
  }
});
