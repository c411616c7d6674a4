/**
 * The flooding thread: one request in progress on each connection, and the answers counted. It sends bytes that are
 * prepared before the flood begins, because the flooded process shares its cores.
 */
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import type { Attack, AttackReport, FloodRequest } from './floods.ts';

const { url, requests, connections, forMs } = workerData as Attack;
const { hostname, port, host } = new URL(url);
const HEAD_END = '\r\n\r\n';

const prepared = requests.map(bytesOf);
const answers: Record<number, number> = {};
let next = 0;

const until = performance.now() + forMs;
const usedBefore = process.threadCpuUsage();
await Promise.all(Array.from({ length: connections }, keepSending));
const report: AttackReport = { answers, busyShare: usedMs() / forMs };
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(report);

function usedMs(): number {
  const { user, system } = process.threadCpuUsage(usedBefore);
  return (user + system) / 1_000;
}

/** On one connection, which is opened again when it is closed. */
async function keepSending(): Promise<void> {
  while (performance.now() < until) await sendOnConnection();
}

function sendOnConnection(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, noDelay: true });
    const send = () => socket.write(prepared[(next += 1) % prepared.length] ?? '');
    let status: number | undefined;
    let missing = 0;
    socket.on('connect', send);
    socket.on('data', (bytes: Buffer) => {
      // Our answers send their head in one piece.
      if (status === undefined) {
        const head = bytes.toString('latin1');
        status = Number(head.slice(9, 12));
        missing = head.indexOf(HEAD_END) + HEAD_END.length + bodyLengthOf(head);
      }
      missing -= bytes.length;
      if (missing > 0) return;
      answers[status] = (answers[status] ?? 0) + 1;
      status = undefined;
      if (performance.now() < until) send();
      else socket.destroy();
    });
    socket.on('error', () => {
      answers[0] = (answers[0] ?? 0) + 1;
    });
    socket.on('close', () => resolve());
  });
}

function bodyLengthOf(head: string): number {
  return Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
}

function bytesOf({ method, path, key, body }: FloodRequest): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...(method === 'GET'
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(head.join('\r\n') + HEAD_END + text);
}
