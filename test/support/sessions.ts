/** Signing in to the console without a browser: by an operator's sign-in link. */
import assert from 'node:assert/strict';
import { createDatabase } from '../../src/store/database.ts';
import { createSignInLink } from '../../src/store/console/sign-in-links.ts';

/** A link that signs the owner of the address in, once. */
export async function signInLink(
  server: { readonly url: string },
  databaseUrl: string,
  email: string,
): Promise<string> {
  const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  try {
    const token = await createSignInLink(database, email, 3_600);
    return `${server.url}/console/auth/sign-in-link?token=${token}`;
  } finally {
    await database.end();
  }
}

/** Returns the cookie of a new session, in the form of a request header. */
export async function signIn(
  server: { readonly url: string },
  databaseUrl: string,
  email: string,
): Promise<string> {
  const link = await signInLink(server, databaseUrl, email);
  const answer = await fetch(link, { redirect: 'manual' });
  const [cookie] = answer.headers.getSetCookie().map((text) => text.split(';')[0] ?? '');
  assert.match(cookie ?? '', /^farebox\.session_token=/, `${answer.status} ${await answer.text()}`);
  return cookie ?? '';
}
