/** A consumer's steps to top up through the hosted page, and the simulator's controls. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { BalanceReply } from '../../src/schemas/balance.ts';
import { CheckoutReply, TopUpsReply } from '../../src/schemas/top-ups.ts';
import type { TestAccount } from './accounts.ts';
import { bodyOf, call, charge, type Answer, type CallOptions } from './http.ts';
import type { Simulator } from './simulators.ts';
import { until, type Server } from './stack.ts';

type At = Pick<Server, 'url'>;
type Consumer = Pick<TestAccount, 'consumerKey'>;

export interface OpenCheckout {
  readonly topUpId: string;
  readonly sessionUrl: string;
}

/**
 * The answer that stays. On a busy machine a request may end before anything has begun (503), or before the processor
 * has answered (202 without an address): it is sent again, with the same key.
 */
export function askForTopUp(
  api: At,
  path: '/v1/checkout' | '/v1/top-up',
  { headers, ...options }: CallOptions,
): Promise<Answer> {
  const keyed = { ...options, headers: { 'idempotency-key': randomUUID(), ...headers } };
  return until(async () => {
    const answer = await call(api, 'POST', path, keyed);
    const isOpen = answer.status === 202 && !('sessionUrl' in (answer.body as object));
    return answer.status !== 503 && !isOpen && answer;
  });
}

export async function openCheckout(
  api: At,
  { consumerKey }: Consumer,
  amount: number,
): Promise<OpenCheckout> {
  const request = { key: consumerKey, body: { amount } };
  const answer = await askForTopUp(api, '/v1/checkout', request);
  const { topUpId, sessionUrl } = bodyOf(answer, 201, CheckoutReply);
  assert.ok(sessionUrl);
  return { topUpId, sessionUrl };
}

/** Submits the form of the hosted page; false when the card is declined. */
export async function pay(sessionUrl: string, card = '4242424242424242'): Promise<boolean> {
  const answer = await fetch(sessionUrl, {
    method: 'POST',
    body: new URLSearchParams({ card }),
  });
  assert.ok(answer.status === 200 || answer.status === 402, `the page answered ${answer.status}`);
  return answer.status === 200;
}

export async function balanceOf(api: At, { consumerKey }: Consumer): Promise<number> {
  return bodyOf(await call(api, 'GET', '/v1/balance', { key: consumerKey }), 200, BalanceReply)
    .balance;
}

/** Ids and states of a consumer's top-ups, newest first. */
export async function topUpsOf(api: At, { consumerKey }: Consumer) {
  const answer = await call(api, 'GET', '/v1/top-up?limit=100', { key: consumerKey });
  return bodyOf(answer, 200, TopUpsReply).topUps;
}

type Controlled = Pick<Simulator, 'url' | 'token'>;

/** The simulator's controls (simulator/controls/controls.ts): `GET`, or `POST` with a body. */
export async function control(
  { url, token }: Controlled,
  path: string,
  body?: object,
  method = body ? 'POST' : 'GET',
): Promise<unknown> {
  const answer = await fetch(`${url}/_simulator/${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-simulator-token': token },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** The faults that are left, and how many requests each will still hit. */
export async function faultsOf(simulator: Controlled): Promise<readonly { times: number }[]> {
  return ((await control(simulator, 'faults')) as { faults: { times: number }[] }).faults;
}

/** Removes all faults. */
export async function forgetFaults(simulator: Controlled): Promise<void> {
  await control(simulator, 'faults', undefined, 'DELETE');
}

/** How many webhooks have not been answered with 2xx yet. */
export async function owedWebhooks(simulator: Controlled): Promise<number> {
  return ((await control(simulator, 'webhooks')) as { owed: unknown[] }).owed.length;
}

/** Disputes the newest payment; returns the id of the dispute. */
export async function openDispute(simulator: Controlled): Promise<string> {
  const { payments } = (await control(simulator, 'payments')) as {
    payments: readonly { payment_intent: string }[];
  };
  const intent = { payment_intent: payments.at(-1)?.payment_intent };
  return ((await control(simulator, 'disputes', intent)) as { id: string }).id;
}

/** Pays a checkout, spends some of it, and loses the dispute of its payment; returns the id of the top-up. */
export async function loseDispute(
  { api, simulator }: { readonly api: At; readonly simulator: Controlled },
  account: TestAccount,
  { paid, spent }: { readonly paid: number; readonly spent: number },
): Promise<string> {
  const { topUpId, sessionUrl } = await openCheckout(api, account, paid);
  const isNow = (status: string) => async () =>
    (await topUpsOf(api, account)).find(({ id }) => id === topUpId)?.status === status;
  await pay(sessionUrl);
  await until(isNow('completed'));
  if (spent > 0) assert.equal((await charge(api, account, { amount: spent })).status, 201);
  await control(simulator, `disputes/${await openDispute(simulator)}/close`, { status: 'lost' });
  await until(isNow('charged_back'));
  return topUpId;
}
