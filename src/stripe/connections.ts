/**
 * The connections to Stripe. They are kept for the next call, and one that was kept may be dead without anybody having
 * said so: a firewall forgot it, or a machine behind a load balancer is gone. So a call on a kept connection that hears
 * nothing for a while is given up, and with it every kept connection that is idle. Stripe's client repeats
 * such a call at once, with its idempotency key, on a new connection, where it may take as long as any other.
 */
import { Agent as HttpAgent, type ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { giveUpAfter } from '../give-up-after.ts';

/**
 * Most calls take less than a second. With the repeated call, an attempt still fits into the step's 15 s, unless this
 * process stood still: then the next attempt may begin before this one has ended, under the same idempotency key.
 */
const SILENCE_MS_MAX = 4_000;

export function keptConnections(protocol: 'http' | 'https'): HttpAgent {
  const agent = new (protocol === 'http' ? HttpAgent : HttpsAgent)({ keepAlive: true });
  const reuse = agent.reuseSocket.bind(agent);
  agent.reuseSocket = (socket, request) => {
    reuse(socket, request);
    giveUpWhenSilent(agent, request);
  };
  return agent;
}

function giveUpWhenSilent(agent: HttpAgent, request: ClientRequest): void {
  const stopWaiting = giveUpAfter(SILENCE_MS_MAX, () => {
    for (const idle of Object.values(agent.freeSockets).flat()) idle?.destroy();
    // The code by which Stripe's client knows that it may repeat the call.
    const message = `A kept connection was silent for ${SILENCE_MS_MAX} ms`;
    request.destroy(Object.assign(new Error(message), { code: 'ECONNRESET' }));
  });
  for (const end of ['response', 'close']) request.once(end, stopWaiting);
}
