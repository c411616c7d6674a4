/**
 * Refuses new passwords that are on a list of the most common ones, or differ only a little from one. The
 * list comes with the code, so no password leaves the process; it is read when the first password is set.
 */
import type { BetterAuthPlugin } from 'better-auth';
import { APIError, createAuthMiddleware } from 'better-auth/api';
import { remembered } from '../remembered.ts';

/** Where somebody chooses a password: by a link, the first one as well as any later one. */
const PATH = '/reset-password';
/** Longer endings could be as hard to guess as a password of their own. */
const AROUND_MAX = 4;
/** `1111111111` and `abababababab` have fewer. */
const CHARACTERS_MIN = 5;
/** What somebody who guesses passwords of this service tries first. */
const OURS = ['farebox'];

export function commonPasswords() {
  return {
    id: 'farebox-common-passwords',
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === PATH,
          handler: createAuthMiddleware(async ({ body }) => {
            const { newPassword } = (body ?? {}) as { readonly newPassword?: unknown };
            if (typeof newPassword !== 'string' || !(await isCommon(newPassword))) return;
            throw new APIError('BAD_REQUEST', {
              code: 'PASSWORD_TOO_COMMON',
              message: 'This password is too easy to guess: many people use it or one like it.',
            });
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}

const readList = remembered(async (): Promise<ReadonlySet<string>> => {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set([...OURS, ...dictionary['passwords-common']]);
});

/** As it is, in capitals, backwards, repeated, or with a few digits and signs around it. */
async function isCommon(password: string): Promise<boolean> {
  const text = password.normalize('NFKC').toLowerCase();
  if (new Set(text).size < CHARACTERS_MIN) return true;
  const listed = await readList();
  const inside = text.replaceAll(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  const variants = [text, text.split(/(?:)/u).toReversed().join(''), repeatedPart(text)];
  if (text.length - inside.length <= AROUND_MAX) variants.push(inside);
  return variants.some((variant) => listed.has(variant));
}

/** `abc` of `abcabc`; a text that repeats nothing is its own part. */
function repeatedPart(text: string): string {
  return text.slice(0, `${text}${text}`.indexOf(text, 1));
}
