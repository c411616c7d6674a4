/** CSV as it is written to a socket: the form of cells, and clients that are slow, disconnect, or see a failure. */
import assert from 'node:assert/strict';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Context } from 'koa';
import { respondCsv, type Cell } from '../../src/http/csv.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { until } from '../support/stack.ts';

type Page = readonly (readonly Cell[])[];

describe('a CSV export', () => {
  let server: Server;
  let pages: () => AsyncIterable<Page>;
  let failures: unknown[];
  let refusals: unknown[];

  before(async () => {
    server = createServer((req, res) => {
      const ctx = { req, res, state: { requestId: 'req_1' } } as unknown as Context;
      const table = { name: 'table', header: ['name', 'amount'], pages: pages() };
      respondCsv(ctx, table, (error) => failures.push(error)).catch((error: unknown) => {
        refusals.push(error);
        res.writeHead(503).end();
      });
    });
    await listenOnLoopback(server);
  });
  beforeEach(() => {
    [failures, refusals] = [[], []];
  });
  after(() => server.close());

  const ask = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      get({ port, host: '127.0.0.1', agent: false }, resolve).on('error', reject);
    });
  const read = async (...given: Page[]) => {
    pages = async function* () {
      yield* given;
    };
    return text(await ask());
  };

  it('consists of its header and its rows, each with the line end of RFC 4180', async () => {
    assert.equal(
      await read([['a', 1n]], [['b', 2n]]),
      'name,amount\r\na,0.000001\r\nb,0.000002\r\n',
    );
  });

  it('consists of the header when there are no rows', async () => {
    assert.equal(await read(), 'name,amount\r\n');
  });

  it('is sent as a file in UTF-8', async () => {
    pages = async function* () {
      yield [['🦦é', 1]];
    };
    const answer = await ask();
    assert.equal(answer.headers['content-type'], 'text/csv; charset=utf-8; header=present');
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="table.csv"');
    assert.equal(answer.headers['x-request-id'], 'req_1');
    assert.equal(await text(answer), 'name,amount\r\n🦦é,1\r\n');
  });

  for (const [cell, written] of [
    ['a,b', '"a,b"'],
    ['say "x"', '"say ""x"""'],
    ['a\nb', '"a\nb"'],
    ['a\rb', '"a\rb"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@x', "'@x"],
    ['\tx', "'\tx"],
    ['\rx', `"'\rx"`],
    [' =1+1', "' =1+1"],
    [';=1+1', ";'=1+1"],
    ['a;=1+1;b', "a;'=1+1;b"],
    // To a spreadsheet that separates cells by semicolons, a quote begins a cell, and the formula is in it.
    ['a;"=1+1;', `"a;'""=1+1;"`],
    ['a\n=1+1', `"a\n'=1+1"`],
    ['a\r=1+1', `"a\r'=1+1"`],
    ['a\r\n=1+1', `"a\r\n'=1+1"`],
    ['\u00a0@x', "'\u00a0@x"],
    [' x;y', ' x;y'],
    ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
    ['__proto__', '__proto__'],
    ['', ''],
    [-5, '-5'],
    [-1_500_000n, '-1.500000'],
    [0n, '0.000000'],
    [300_000n, '0.300000'],
    [9_007_199_254_740_991n, '9007199254.740991'],
  ] as const) {
    it(`writes ${JSON.stringify(String(cell))} as ${JSON.stringify(written)}`, async () => {
      assert.equal(await read([[cell, 'x']]), `name,amount\r\n${written},x\r\n`);
    });
  }

  it('is an error and not a file when its first page fails', async () => {
    pages = async function* () {
      await Promise.reject(new Error('away'));
      yield [];
    };
    assert.equal((await ask()).statusCode, 503);
    assert.deepEqual(refusals, [new Error('away')]);
  });

  it('breaks the connection when a later page fails', async () => {
    pages = async function* () {
      yield [['a', 1n]];
      throw new Error('away');
    };
    const answer = await ask();
    await assert.rejects(text(answer), { code: 'ECONNRESET' });
    assert.equal(answer.complete, false);
    assert.deepEqual(failures, [new Error('away')]);
  });

  it('does not end like a whole file when a later page fails, in HTTP/1.0 either', async () => {
    const isSent = Promise.withResolvers<void>();
    pages = async function* () {
      yield [['a', 1n]];
      await isSent.promise;
      throw new Error('away');
    };
    const { port } = server.address() as AddressInfo;
    const client = connect(port, '127.0.0.1');
    client.write('GET / HTTP/1.0\r\n\r\n');
    client.once('data', () => isSent.resolve());
    await assert.rejects(text(client), { code: 'ECONNRESET' });
  });

  it('reads no faster than a slow client, and stops when the client disconnects', async () => {
    let written = 0;
    let isOver = false;
    pages = async function* () {
      try {
        for (;;) {
          yield [['x'.repeat(100_000), 1n]];
          written += 100_000;
        }
      } finally {
        isOver = true;
      }
    };
    const answer = await ask();
    answer.pause();
    // Until the buffers in between are full: the amount then stays the same for a while.
    let before = -1;
    await until(
      () => {
        const isSettled = written > 0 && written === before;
        before = written;
        return isSettled;
      },
      { intervalMs: 300 },
    );
    // The system's socket buffers, not the data, which has no end.
    assert.ok(written < 50_000_000, `${written} bytes`);
    answer.destroy();
    await until(() => isOver);
    assert.deepEqual([failures, refusals], [[], []]);
  });
});
