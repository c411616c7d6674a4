/** Like send-fetch.js, with node:http: the client needs two thirds of the time per charge that it needs with fetch. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { noAnswer } from './send-by.js';

/** A bundle for Workers may have been built with Node's conditions. */
export const CAN_SHARE_REQUESTS = globalThis.navigator?.userAgent !== 'Cloudflare-Workers';

export function send(url, { method, headers, body, timeoutMs, signal }) {
  return new Promise((resolve, reject) => {
    // Uses the process's global agent, which keeps connections open and knows the proxy. Does not follow redirects.
    const request = url.startsWith('https:') ? requestHttps : requestHttp;
    const sent = request(url, { method, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode,
          header: (name) => response.headers[name],
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    const giveUp = (error) => {
      reject(error);
      sent.destroy();
    };
    const abort = () => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(noAnswer()), timeoutMs);
    signal?.addEventListener('abort', abort);
    sent.on('error', reject);
    // A switch of protocols that nobody asked for. Without a listener, Node closes the connection and reports nothing.
    sent.on('upgrade', (response) =>
      giveUp(new Error(`Unexpected status ${response.statusCode}.`)),
    );
    sent.on('close', () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    });
    sent.end(body);
  });
}
