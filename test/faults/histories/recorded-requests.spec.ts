/** What the recorder says about attempts whose outcome was unknown, against a server that answers as it is told. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { closeNow, listenOnLoopback } from '../../support/loopback.ts';
import { RecordedRequests } from './recorded-requests.ts';

const UNKNOWN = { status: 500, body: { error: { code: 'outcome_unknown' } } };
const DONE = { status: 200, body: { status: 'released' } };

describe('a recorded release', () => {
  let server: Server;
  let url: string;
  const answeredMs: number[] = [];
  const answers = [UNKNOWN, DONE];

  before(async () => {
    server = createServer((_, response) => {
      const { status, body } = answers[answeredMs.length] ?? DONE;
      answeredMs.push(performance.now());
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  });
  after(() => server.close());

  it('may have happened since its first attempt whose outcome was unknown', async () => {
    const requests = new RecordedRequests([{ url }]);
    await requests.make({
      method: 'POST',
      // No route of ours, so that the answers need not be whole.
      path: '/release',
      key: 'key',
      effectOf: () => ({ kind: 'release', holdId: 'hld_1' }),
    });
    const [operation] = requests.operations;
    assert.equal(answeredMs.length, 2);
    assert.ok(operation && operation.calledMs <= (answeredMs[0] as number), 'recorded too late');
  });
});

describe('a request that is never answered', () => {
  const server = createServer(() => {});

  after(() => closeNow(server));

  it('is given up as a violation, and ends the run', async () => {
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    const requests = new RecordedRequests([{ url }], 50);
    const asked = {
      method: 'GET',
      path: '/silent',
      key: 'key',
      effectOf: () => undefined,
    } as const;
    assert.equal(await requests.make(asked), undefined);
    assert.deepEqual(requests.violations, ['GET /silent {} has no answer after 50 ms']);
    assert.equal(requests.isStuck, true);
  });
});
