/** An account as its owner gets it: made by the command, its keys shown once. */
import { randomUUID } from 'node:crypto';
import { farebox, type Environment } from './stack.ts';

export interface Account {
  readonly consumerId: string;
  readonly consumerKey: string;
  readonly developerId: string;
  readonly developerKey: string;
}

export async function createAccount(env: Environment, balance: number): Promise<Account> {
  const email = `${randomUUID()}@example.com`;
  const args = ['account', 'create', '--email', email, '--balance', String(balance), '--json'];
  return JSON.parse(await farebox(args, { env })) as Account;
}

/** What the service answers to a GET of the key's owner. */
export async function read<Answer>(url: string, key: string): Promise<Answer> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as Answer;
}
