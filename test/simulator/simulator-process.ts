/**
 * The simulator as a child process with its own directory, a client of the real `stripe` package, and a receiver
 * for its webhooks that accepts only what `constructEvent` verifies.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Stripe } from 'stripe';
import { newDataFolder } from '../support/data-folder.ts';

const MAIN = join(import.meta.dirname, '../../simulator/main.ts');
const SECRET_KEY = 'sk_test_simulator';
const WEBHOOK_SECRET = 'whsec_simulator';
export const TOKEN = 'token_of_the_simulator';
const WAIT_MAX_MS = 60_000;

export class SimulatorProcess {
  readonly stripe: Stripe;
  readonly port: number;
  readonly directory: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, directory: string, port: number) {
    this.#child = child;
    this.directory = directory;
    this.port = port;
    this.stripe = clientOf(port);
  }

  /** `directory` of an earlier one to continue with its data, `port` to keep its address. */
  static async start(
    webhookUrl: string,
    earlier?: { readonly directory: string; readonly port: number },
    // Long enough that only the controls settle a debit.
    { settleSeconds = 3_600, tickMs = 50 } = {},
  ): Promise<SimulatorProcess> {
    const directory = earlier?.directory ?? (await newDataFolder('simulator-'));
    const child = fork(MAIN, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: {
        SIMULATOR_PORT: String(earlier?.port ?? 0),
        SIMULATOR_DB: join(directory, 'simulator.sqlite'),
        SIMULATOR_SECRET_KEY: SECRET_KEY,
        SIMULATOR_WEBHOOK_URL: webhookUrl,
        SIMULATOR_WEBHOOK_SECRET: WEBHOOK_SECRET,
        SIMULATOR_TOKEN: TOKEN,
        SIMULATOR_SETTLE_SECONDS: String(settleSeconds),
        SIMULATOR_TICK_MS: String(tickMs),
      },
    });
    const [message] = (await once(child, 'message')) as [{ ready: true; port: number }];
    return new SimulatorProcess(child, directory, message.port);
  }

  client(secretKey: string): Stripe {
    return clientOf(this.port, secretKey);
  }

  /** Stops it and keeps its data. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const exited = once(this.#child, 'exit') as Promise<[number | null]>;
    this.#child.kill(signal);
    return (await exited)[0];
  }

  /** Closes its IPC channel, like its parent's death would; resolves when it is gone. */
  async abandon(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  async remove(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.end();
    await rm(this.directory, { recursive: true });
  }

  /** A control under /_simulator/, and its answer. */
  async control<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${this.port}/_simulator/${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', 'X-Simulator-Token': TOKEN },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T;
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }
}

export class WebhookReceiver {
  /** What was verified and accepted, in order of arrival. */
  readonly events: Stripe.Event[] = [];
  /** How many deliveries were refused because the test asked for it. */
  refusals = 0;
  /** The status that every delivery is answered with. */
  status = 200;
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/stripe`;
  }

  static async listen(): Promise<WebhookReceiver> {
    const { webhooks } = clientOf(0);
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const signature = request.headers['stripe-signature'] ?? '';
        const event = webhooks.constructEvent(Buffer.concat(chunks), signature, WEBHOOK_SECRET);
        if (receiver.status < 300) receiver.events.push(event);
        else receiver.refusals += 1;
        response.writeHead(receiver.status).end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const receiver = new WebhookReceiver(server);
    return receiver;
  }

  /** Forgets what it has received. */
  forget(): void {
    this.events.length = 0;
    this.refusals = 0;
  }

  types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** The first event of this type about the object with this id, once it has arrived. */
  async event(type: string, objectId: string): Promise<Stripe.Event> {
    return until(() =>
      this.events.find((event) => {
        const object = event.data.object as { id?: string };
        return event.type === type && object.id === objectId;
      }),
    );
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Waits for a condition, and returns its value. */
export async function until<T>(condition: () => T | undefined | false): Promise<T> {
  const giveUpAtMs = Date.now() + WAIT_MAX_MS;
  for (;;) {
    const value = condition();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > giveUpAtMs) throw new Error(`waited in vain for ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function clientOf(port: number, secretKey = SECRET_KEY): Stripe {
  return new Stripe(secretKey, {
    host: '127.0.0.1',
    port,
    protocol: 'http',
    maxNetworkRetries: 0,
    timeout: 60_000,
    telemetry: false,
  });
}

/** A simulator and the receiver of its webhooks. `close` stops both. */
export async function openSimulator() {
  const receiver = await WebhookReceiver.listen();
  const simulator = await SimulatorProcess.start(receiver.url);
  const close = async () => {
    await simulator.remove();
    receiver.close();
  };
  return { receiver, simulator, stripe: simulator.stripe, close };
}
