/** An event that a worker was sending when it was killed arrives by another worker, with the same id and body. */
import assert from 'node:assert/strict';
import { NewWebhookEndpointReply } from '../../../src/schemas/webhook-endpoints.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { bodyOf, call } from '../../support/http.ts';
import { startReceiver, type Receiver } from '../../support/receiver.ts';
import {
  startStackAndWorkerProcess,
  startWorkerProcess,
  until,
  type Server,
  type ServerProcess,
  type Stack,
} from '../../support/stack.ts';

describe('a worker that is killed while it sends', () => {
  let stack: Stack<Server, ServerProcess>;
  let second: ServerProcess;
  let receiver: Receiver;
  let account: TestAccount;

  before(async () => {
    stack = await startStackAndWorkerProcess({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    receiver = await startReceiver();
    account = await createAccount(stack.env, 0);
  });
  after(async () => {
    await second?.stop();
    await receiver?.stop();
    await stack?.stop();
  });

  it('leaves its events to another one', async () => {
    const post = (path: string, body?: object) =>
      call(stack.api, 'POST', path, { key: account.developerKey, body });
    const answer = await post('/v1/webhook-endpoints', { url: receiver.url });
    const { id } = bodyOf(answer, 201, NewWebhookEndpointReply);
    // It never answers, so what is sent now dies with the worker.
    receiver.respondWith(() => {});
    for (let n = 0; n < 3; n += 1) await post(`/v1/webhook-endpoints/${id}/test`);
    await until(() => receiver.events.length > 0);
    stack.worker.kill('SIGKILL');
    await stack.worker.exited;
    const accepted = new Set<string>();
    receiver.respondWith((response, event) => {
      accepted.add(event.id);
      response.writeHead(200).end();
    });
    second = await startWorkerProcess({ env: stack.env });
    await until(() => accepted.size === 3);
    for (const sent of Map.groupBy(receiver.events, (event) => event.id).values()) {
      assert.equal(new Set(sent.map(({ raw }) => raw)).size, 1);
    }
  });
});
