/** The flooding thread: sends as many concurrent requests as it has connections, and counts the answers. */
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import type { Attack, FloodRequest } from './floods.ts';

const { url, flood, connections, forMs } = workerData as Attack;
const agent = new Agent({ keepAlive: true, maxSockets: connections });
const until = performance.now() + forMs;
const answers: Record<number, number> = {};
let next = 0;

await Promise.all(
  Array.from({ length: connections }, async () => {
    while (performance.now() < until) {
      const sent = flood.requests[(next += 1) % flood.requests.length];
      if (!sent) throw new Error('the flood has no requests');
      const status = await send(sent);
      answers[status] = (answers[status] ?? 0) + 1;
    }
  }),
);
agent.destroy();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(answers);

/** The status; 0 for a connection that broke. */
function send({ method, path, key, body }: FloodRequest): Promise<number> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve) => {
    const sent = request(
      url + path,
      {
        method,
        agent,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(text === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        },
      },
      (response) => {
        response.resume();
        response.on('close', () => resolve(response.statusCode ?? 0));
      },
    );
    sent.on('error', () => resolve(0));
    sent.end(text);
  });
}
