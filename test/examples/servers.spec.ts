/** The examples that serve over HTTP, as processes, against the API. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { FareboxConsumer } from '@farebox/client';
import { CuttingProxy } from '../client/cutting-proxy.ts';
import { PaidBooks } from '../client/paid-books.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { read } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { startExample } from './start-example.ts';

describe('examples: paid servers', () => {
  let api: TestApi;
  let account: TestAccount;
  let books: PaidBooks;
  let headers: Record<string, string>;
  let child: ChildProcess | undefined;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    books = new PaidBooks(api, account);
    headers = { 'x-service-key': account.consumerKey };
  });
  afterEach(() => {
    child?.kill();
  });
  after(() => api?.stop());

  const settings = () => ({ FAREBOX_URL: api.url, FAREBOX_SECRET_KEY: account.developerKey });

  async function start(file: string, env: Record<string, string> = {}): Promise<URL> {
    const example = await startExample(file, { ...settings(), ...env });
    child = example.child;
    return example.url;
  }

  it('Express: a roll of the dice is paid for, a wrong one is not', async () => {
    const url = await start('express-api.ts');
    const ask = (path: string) => fetch(new URL(path, url), { headers });
    assert.equal((await fetch(new URL('/prices', url))).status, 200);
    const response = await ask('/dice?sides=20');
    const { rolled } = (await response.json()) as { rolled: number };
    assert.ok(rolled >= 1 && rolled <= 20);
    assert.ok(response.headers.get('x-charge-receipt'));
    assert.equal((await ask('/dice?sides=1')).status, 400);
    assert.equal((await fetch(new URL('/dice', url))).status, 401);
    assert.equal(await books.balance(), 9.99);
  });

  it('Hono: an answer is paid for by its length', async () => {
    const { FAREBOX_URL, FAREBOX_SECRET_KEY } = process.env;
    Object.assign(process.env, settings());
    try {
      const { default: app } = await import('../../examples/hono-worker.ts');
      const ask = (path: string) => app.fetch(new Request(`http://worker${path}`, { headers }));
      const response = await ask('/lorem?words=250');
      assert.equal((await response.text()).split(' ').length, 250);
      assert.equal((await ask('/lorem?words=none')).status, 400);
      assert.equal(await books.balance(), 9.975);
    } finally {
      restore('FAREBOX_URL', FAREBOX_URL);
      restore('FAREBOX_SECRET_KEY', FAREBOX_SECRET_KEY);
    }
  });

  describe('LLM proxy', () => {
    let upstream: Server;
    let answerOf: (response: ServerResponse, asked: Record<string, unknown>) => Promise<void>;
    let proxy: URL;

    beforeEach(async () => {
      upstream = createServer((request, response) => void serve(request, response));
      upstream.listen(0, '127.0.0.1');
      await once(upstream, 'listening');
      proxy = await startProxy();
    });
    afterEach(() => {
      upstream.closeAllConnections();
      upstream.close();
    });

    function startProxy(env: Record<string, string> = {}): Promise<URL> {
      const { port } = upstream.address() as AddressInfo;
      const UPSTREAM_URL = `http://127.0.0.1:${port}`;
      const settings = { UPSTREAM_URL, UPSTREAM_KEY: 'sk-upstream', UPSTREAM_MODEL: 'm', ...env };
      return start('llm-proxy.ts', settings);
    }

    async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
      assert.equal(request.headers.authorization, 'Bearer sk-upstream');
      await answerOf(response, JSON.parse(await text(request)) as Record<string, unknown>);
    }

    const ask = (init: RequestInit = {}) =>
      fetch(`${proxy.href}/chat/completions`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Otters?' }] }),
        ...init,
      });

    it('streams, and captures what the tokens cost', async () => {
      answerOf = async (response, asked) => {
        assert.deepEqual([asked['model'], asked['stream']], ['m', true]);
        for (const word of ['Otters', ' swim', '.']) say(response, piece(word));
        say(response, usage);
        response.end('data: [DONE]\n\n');
      };
      const answer = await (await ask()).text();
      assert.match(answer, /Otters.*swim.*\[DONE\]\n\n: farebox \{"id":"chg_/s);
      const [charge] = await books.charges();
      assert.equal(charge?.amount, 0.033);
      assert.ok(answer.includes(charge.receipt));
      assert.equal(await books.balance(), 9.967);
    });

    const call = { function: { arguments: '{"otters"' } };
    const firsts: Readonly<Record<string, object>> = {
      'its first word': { content: 'Otters' },
      'its call of a tool': { content: null, tool_calls: [call] },
      'its reasoning': { reasoning_content: 'Otters are' },
    };
    for (const [moment, delta] of Object.entries(firsts)) {
      it(`captures what the response cost when the caller leaves after ${moment}`, async () => {
        const left = Promise.withResolvers<void>();
        answerOf = async (response) => {
          say(response, { choices: [{ delta }] });
          await left.promise;
          say(response, piece(' swim'));
          say(response, usage);
          response.end('data: [DONE]\n\n');
        };
        const caller = new AbortController();
        const { body } = await ask({ signal: caller.signal });
        await body?.getReader().read();
        caller.abort();
        // A later connection: when it is answered, the proxy knows that the earlier one has ended.
        assert.equal((await ask({ body: '{' })).status, 400);
        left.resolve();
        await until(async () => (await books.holds())[0] !== 'open');
        assert.deepEqual(await books.holds(), ['captured']);
        assert.equal((await books.charges())[0]?.amount, 0.033);
      });
    }

    it('is free when the response breaks off before it says what it used', async () => {
      const read = Promise.withResolvers<void>();
      answerOf = async (response) => {
        say(response, piece('Otters'));
        await read.promise;
        response.destroy();
      };
      const reader = (await ask()).body?.getReader();
      assert.equal((await reader?.read())?.done, false);
      read.resolve();
      assert.equal((await reader?.read())?.done, true);
      assert.deepEqual([await books.holds(), await books.balance()], [['released'], 10]);
    });

    for (const [what, counts] of Object.entries({
      'cost more than a charge may': { prompt_tokens: 1e12, completion_tokens: 1 },
      'are not all counted': { prompt_tokens: 1 },
    })) {
      it(`releases the money at once when the tokens ${what}`, async () => {
        answerOf = async (response) => {
          say(response, piece('Otters'));
          say(response, { choices: [], usage: counts });
          response.end('data: [DONE]\n\n');
        };
        const answered = await ask();
        await assert.rejects(answered.text());
        assert.deepEqual([await books.holds(), await books.balance()], [['released'], 10]);
      });
    }

    it('finds a capture whose response was lost at each attempt', async () => {
      let captures = 0;
      // The client makes three attempts.
      await using line = await CuttingProxy.start(api.url, (chunk) => {
        if (!/^POST \S+capture /.test(chunk.toString('latin1'))) return undefined;
        captures += 1;
        return captures <= 3 ? 'after' : undefined;
      });
      child?.kill();
      proxy = await startProxy({ FAREBOX_URL: line.url });
      answerOf = async (response) => {
        say(response, usage);
        response.end('data: [DONE]\n\n');
      };
      const answer = await (await ask()).text();
      const charges = await books.charges();
      assert.deepEqual([captures, charges.length], [4, 1]);
      assert.ok(answer.includes(charges[0]?.receipt ?? 'no receipt'));
    });

    it('holds the money for an hour, longer than any response takes', async () => {
      answerOf = async (response) => {
        const { holds } = await read<{ holds: { createdAt: string; expiresAt: string }[] }>(
          `${api.url}/v1/holds`,
          account.developerKey,
        );
        const [seconds] = holds.map(
          ({ createdAt, expiresAt }) => (Date.parse(expiresAt) - Date.parse(createdAt)) / 1_000,
        );
        say(response, piece(`${seconds}`));
        response.end();
      };
      assert.match(await (await ask()).text(), /"3600"/);
    });

    it('asks for one answer, because what is held pays for no more', async () => {
      answerOf = async (response, asked) => {
        assert.equal(asked['n'], 1);
        say(response, piece('Otters'));
        response.end('data: [DONE]\n\n');
      };
      const body = JSON.stringify({ model: 'm', n: 50, messages: [] });
      assert.equal((await ask({ body })).status, 200);
    });

    for (const name of ['max_tokens', 'max_completion_tokens']) {
      it(`holds and asks for no more than the caller wants to pay for, by ${name}`, async () => {
        const few = await api.createAccount(0.01);
        const maxima: unknown[] = [];
        answerOf = async (response, asked) => {
          maxima.push(asked['max_completion_tokens'], asked['max_tokens']);
          say(response, piece('Otters'));
          response.end('data: [DONE]\n\n');
        };
        for (const max of [16, 1_000_000]) {
          const payer = max === 16 ? few : account;
          const body = JSON.stringify({ model: 'm', messages: [], [name]: max });
          const sent = { 'x-service-key': payer.consumerKey };
          assert.equal((await ask({ body, headers: sent })).status, 200);
        }
        assert.deepEqual(maxima, [16, undefined, 4_096, undefined]);
      });
    }

    it('passes on what changes the answer and costs no more, and nothing that does', async () => {
      const free = {
        frequency_penalty: 1,
        parallel_tool_calls: false,
        presence_penalty: 1,
        reasoning_effort: 'low',
        seed: 7,
        stop: ['.'],
        temperature: 0,
      };
      const dear = { service_tier: 'priority', web_search_options: {}, modalities: ['audio'] };
      const passed: [string, unknown][] = [];
      answerOf = async (response, asked) => {
        passed.push(...Object.entries(asked).filter(([name]) => name in free || name in dear));
        say(response, piece('Otters'));
        response.end('data: [DONE]\n\n');
      };
      const messages = [{ role: 'developer', content: 'Be brief.' }];
      const body = JSON.stringify({ model: 'm', messages, ...free, ...dear });
      assert.equal((await ask({ body })).status, 200);
      assert.deepEqual(Object.fromEntries(passed), free);
    });

    it('is free when the model gives no answer', async () => {
      answerOf = async (response) => {
        response.writeHead(500).end();
      };
      assert.equal((await ask()).status, 502);
      assert.deepEqual([await books.holds(), await books.balance()], [['released'], 10]);
    });

    const parts: Readonly<Record<string, object>> = {
      'an image by its URL': { type: 'image_url', image_url: { url: 'https://img.example/1.png' } },
      'a file by its id': { type: 'file', file: { file_id: 'file-1' } },
    };
    for (const [name, part] of Object.entries(parts)) {
      it(`refuses ${name}, which costs more tokens than it has bytes`, async () => {
        answerOf = async () => assert.fail('asked');
        const content = [{ type: 'text', text: 'Otters?' }, part];
        const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
        const refused = await ask({ body });
        assert.equal(refused.status, 400);
        const { error } = (await refused.json()) as { error: { code: string; message: string } };
        assert.equal(error.code, 'unsupported_content');
        assert.match(error.message, /text/);
        assert.deepEqual(await books.holds(), []);
      });
    }

    it('refuses another model, which may cost more than its prices', async () => {
      answerOf = async (response) => void response.writeHead(500).end();
      const body = JSON.stringify({ model: 'dear', messages: [{ role: 'user', content: 'Hi' }] });
      const refused = await ask({ body });
      assert.equal(refused.status, 400);
      assert.match(await refused.text(), /for the model m,/);
      assert.deepEqual(await books.holds(), []);
    });

    it('refuses a body that is not a conversation, before it holds anything', async () => {
      answerOf = async () => assert.fail('asked');
      for (const body of ['', '{', 'null', '[]', '{"messages":[null]}', '{"messages":{}}']) {
        const refused = await ask({ body });
        assert.equal(refused.status, 400, body);
      }
      assert.deepEqual(await books.holds(), []);
    });

    it('refuses a body of more than 4 MiB', async () => {
      answerOf = async () => assert.fail('asked');
      const refused = await ask({ body: ' '.repeat(4 * 1024 * 1024 + 1) });
      assert.equal(refused.status, 413);
      assert.match(await refused.text(), /body_too_large/);
    });

    it('accepts text parts and tool calls', async () => {
      answerOf = async (response) => {
        say(response, piece('Otters'));
        response.end('data: [DONE]\n\n');
      };
      const messages = [
        { role: 'user', content: [{ type: 'text', text: 'Otters?' }] },
        { role: 'assistant', content: null, tool_calls: [] },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
        { role: 'assistant', tool_calls: [] },
      ];
      const body = JSON.stringify({ model: 'm', messages });
      assert.equal((await ask({ body })).status, 200);
    });

    it('asks no model for a caller who cannot pay', async () => {
      answerOf = async () => assert.fail('asked');
      const poor = await api.createAccount(0.01);
      const refused = await ask({ headers: { 'x-service-key': poor.consumerKey } });
      assert.equal(refused.status, 402);
      const { error } = (await refused.json()) as { error: { code: string; topUpUrl: string } };
      assert.equal(error.code, 'insufficient_balance');
      assert.match(error.topUpUrl, /link=/);
      assert.equal((await ask({ headers: {} })).status, 401);
    });

    it('tells the holder of a spend key which limit is reached', async () => {
      answerOf = async () => assert.fail('asked');
      const consumer = new FareboxConsumer({ consumerKey: account.consumerKey, baseUrl: api.url });
      const { id } = await consumer.budgets.create({ name: 'agent', limit: 0.01 });
      const { key } = await consumer.budgets.createKey(id);
      const refused = await ask({ headers: { 'x-service-key': key } });
      const { error } = (await refused.json()) as { error: { code: string; raiseUrl: string } };
      assert.deepEqual([refused.status, error.code], [402, 'spend_limit_reached']);
      assert.match(error.raiseUrl, /^http/);
    });
  });
});

function say(response: ServerResponse, data: object): void {
  response.write(`data: ${JSON.stringify(data)}\n\n`);
}

const usage = { choices: [], usage: { prompt_tokens: 1_000, completion_tokens: 2_000 } };

function piece(content: string) {
  return { choices: [{ delta: { content } }] };
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}
