/** Signing in to the console without a browser: by an operator's sign-in link, or through the sign-in endpoints. */
import assert from 'node:assert/strict';
import type { Client } from 'pg';
import { sql } from '../../src/store/database.ts';
import { createSignInLink } from '../../src/store/console/sign-in-links.ts';
import type { Answer } from './http.ts';
import { keptPool } from './kept-pools.ts';
import { noteSecret } from './leaks.ts';
import { until } from './stack.ts';

/** A link to the page whose button signs the owner of the address in, once. */
export async function signInLink(
  server: { readonly url: string },
  databaseUrl: string,
  email: string,
): Promise<string> {
  const token = await createSignInLinkToken(databaseUrl, email);
  return `${server.url}/console/auth/sign-in-link?token=${token}`;
}

/** Sends what the button of the page behind a sign-in link sends. */
export function useSignInLink(link: string, headers: Record<string, string> = {}) {
  const { origin, pathname, searchParams } = new URL(link);
  return fetch(origin + pathname, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin, ...headers },
    body: new URLSearchParams({ token: searchParams.get('token') ?? '' }),
  });
}

export async function createSignInLinkToken(databaseUrl: string, email: string): Promise<string> {
  const token = await createSignInLink(await keptPool(databaseUrl), email, 3_600);
  noteSecret(token);
  return token;
}

/** Tests sign in from one address, on a fast machine more often in a minute than the limit allows. */
export async function forgetSignIns(databaseUrl: string): Promise<void> {
  const pool = await keptPool(databaseUrl);
  await pool.query(sql.typeAlias('nothing')`delete from console.rate_limits`);
}

/** What `farebox account promote` and an enrollment of two-factor authentication leave in the database. */
export async function makeOperator(
  sql: Pick<Client, 'query'>,
  email: string,
  hasSecondFactor = true,
): Promise<void> {
  await sql.query('update farebox.accounts set operator_since = now() where email = $1', [email]);
  await sql.query('update console.users set two_factor_enabled = $2 where email = $1', [
    email,
    hasSecondFactor,
  ]);
}

/** Returns the cookie of a new session, in the form of a request header. */
export async function signIn(
  server: { readonly url: string },
  databaseUrl: string,
  email: string,
): Promise<string> {
  const link = await signInLink(server, databaseUrl, email);
  const answer = await useSignInLink(link);
  const [cookie] = answer.headers.getSetCookie().map((text) => text.split(';')[0] ?? '');
  assert.match(cookie ?? '', /^farebox\.session_token=/, `${answer.status} ${await answer.text()}`);
  noteSecret(/=([\w-]+)/.exec(cookie ?? '')?.[1]);
  return cookie ?? '';
}

/** The token of the newest mail to the address with a link to set a password, once there is one. Needs DEV_MAIL. */
export async function mailedToken(sql: Pick<Client, 'query'>, email: string): Promise<string> {
  const mail = await until(async () => {
    const { rows } = await sql.query<{ body: string }>(
      `select body from console.mails where recipient = $1 and body like '%token=%' order by id desc limit 1`,
      [email],
    );
    return rows[0]?.body;
  });
  return /token=([\w-]+)/.exec(mail)?.[1] ?? assert.fail(`no token in: ${mail}`);
}

/** The cookies that an answer sets, in the form of a request header. */
export function cookiesOf({ headers }: Answer): string {
  return headers
    .getSetCookie()
    .map((text) => text.split(';')[0])
    .join('; ');
}

/** The body of a sign-in endpoint's answer. better-auth spells its content type differently. */
export function authBodyOf({ body }: Answer): unknown {
  return typeof body === 'string' ? JSON.parse(body) : body;
}

/** Why a sign-in endpoint refused. */
export function refusalOf({ body }: Answer): {
  readonly reason?: string;
  readonly message: string;
} {
  const { error } = body as { readonly error?: { reason?: string; message: string } };
  return error ?? assert.fail(`no error in: ${JSON.stringify(body)}`);
}
