/** Requests about budgets, as tests make them. */
import { randomUUID } from 'node:crypto';
import type { Static } from 'typebox';
import { APPROVED_DEVELOPERS_MAX } from '../../src/domain/approval.ts';
import { wireId } from '../../src/domain/ids.ts';
import { BudgetReply } from '../../src/schemas/budgets.ts';
import { NewKeyReply } from '../../src/schemas/keys.ts';
import type { TestAccount } from './accounts.ts';
import { bodyOf, call, charge, type Answer } from './http.ts';

type Server = { readonly url: string };
type Body = Readonly<Record<string, unknown>>;
export type Budget = Static<typeof BudgetReply>;

export function askBudget(server: Server, key: string, body: Body = {}): Promise<Answer> {
  return call(server, 'POST', '/v1/budgets', { key, body: { name: 'agent', ...body } });
}

export async function makeBudget(server: Server, key: string, body: Body = {}): Promise<Budget> {
  return bodyOf(await askBudget(server, key, body), 201, BudgetReply);
}

const developers = (count: number) =>
  Array.from({ length: count }, () => wireId('developer', randomUUID()));

/** The longest lists that a budget may have, of names and developers that nobody else has. */
export function longestLists() {
  return {
    tools: Array.from({ length: 100 }, () => randomUUID().padStart(100, '-')),
    developers: developers(100),
    approvedDevelopers: developers(APPROVED_DEVELOPERS_MAX),
  };
}

export async function showBudget(server: Server, key: string, id: string): Promise<Budget> {
  return bodyOf(await call(server, 'GET', `/v1/budgets/${id}`, { key }), 200, BudgetReply);
}

export function askChange(server: Server, key: string, id: string, body: Body): Promise<Answer> {
  return call(server, 'PATCH', `/v1/budgets/${id}`, { key, body });
}

export async function changeBudget(
  server: Server,
  key: string,
  id: string,
  body: Body,
): Promise<Budget> {
  return bodyOf(await askChange(server, key, id, body), 200, BudgetReply);
}

export async function closeBudget(
  server: Server,
  key: string,
  id: string,
  body?: Body,
): Promise<Budget> {
  const answer = await call(server, 'POST', `/v1/budgets/${id}/close`, { key, body });
  return bodyOf(answer, 200, BudgetReply);
}

/** As its owner does in the console, with the headers of a session: no key closes the budget of a single developer. */
export async function closeAsOwner(
  server: Server,
  headers: Readonly<Record<string, string>>,
  id: string,
): Promise<Budget> {
  const answer = await call(server, 'POST', `/v1/budgets/${id}/close`, { headers });
  return bodyOf(answer, 200, BudgetReply);
}

export function askKey(
  server: Server,
  key: string,
  budgetId: string,
  body: Body = {},
): Promise<Answer> {
  return call(server, 'POST', `/v1/budgets/${budgetId}/keys`, { key, body });
}

/** A spend key and its id. */
export async function makeKey(
  server: Server,
  key: string,
  budgetId: string,
  body: Body = {},
): Promise<Static<typeof NewKeyReply>> {
  return bodyOf(await askKey(server, key, budgetId, body), 201, NewKeyReply);
}

/** A charge of this many dollars by a spend key. */
export function spend(
  server: Server,
  account: TestAccount,
  spendKey: string,
  amount: number,
  changes: Body = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return charge(server, { ...account, consumerKey: spendKey }, { amount, ...changes }, headers);
}
