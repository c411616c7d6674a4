/** Each path that a webhook endpoint can take, for record.ts. */
import { NewWebhookEndpointReply } from '../../src/schemas/webhook-endpoints.ts';
import type { Respond } from '../support/agents.ts';
import type { AgentHarness } from '../support/agent-harness.ts';
import { bodyOf, call } from '../support/http.ts';
import { until } from '../support/stack.ts';

/** Each runs one to its end and returns the id of its workflow. */
export const EVENT_PATHS: Readonly<Record<string, (harness: AgentHarness) => Promise<string>>> = {
  async 'webhooks-deleted'(harness) {
    const { id, path } = await tested(harness, (_, response) => void response.writeHead(200).end());
    await ask(harness, 'DELETE', path);
    return `webhooks/${id}`;
  },

  async 'webhooks-gone'(harness) {
    const { id } = await tested(harness, (_, response) => void response.writeHead(410).end());
    return `webhooks/${id}`;
  },

  async 'webhooks-retried'(harness) {
    const { id, path, calls } = await tested(
      harness,
      (_, response, count) => void response.writeHead(count > 2 ? 200 : 503).end(),
    );
    await until(() => calls.length === 3);
    await ask(harness, 'PATCH', path, { enabled: false });
    return `webhooks/${id}`;
  },
};

/** An endpoint that was sent a test. */
async function tested(harness: AgentHarness, respond: Respond) {
  // Any server on loopback will do.
  const { url, calls } = await harness.agent(`receiver-${Date.now()}`, respond);
  const made = await ask(harness, 'POST', '/v1/webhook-endpoints', { url });
  const { id } = bodyOf(made, 201, NewWebhookEndpointReply);
  const path = `/v1/webhook-endpoints/${id}`;
  await ask(harness, 'POST', `${path}/test`);
  await until(() => calls.length > 0);
  return { id, path, calls };
}

function ask({ stack, account }: AgentHarness, method: string, path: string, body?: object) {
  return call(stack.api, method, path, { key: account.developerKey, body });
}
