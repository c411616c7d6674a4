/** What a grant's workflow does in Postgres. May run twice: the row's own conditions decide. */
import { ApplicationFailure } from '@temporalio/activity';
import type { GrantStatus, GrantType } from '../src/domain/grant.ts';
import type { Database } from '../src/store/database.ts';
import { expireGrant } from '../src/store/agents/grants.ts';
import { rowIdOf } from './row-id.ts';

/** What a workflow needs to know of a grant; no personal data, since histories keep it. */
export interface SeenGrant {
  readonly type: GrantType;
  readonly status: GrantStatus;
  readonly uses: number;
  readonly expiresInMs: number;
}

export type GrantActivities = ReturnType<typeof createGrantActivities>;

export function createGrantActivities({ database }: { readonly database: Database }) {
  return {
    /** Looks at the grant, and writes down that it has expired if it has. */
    async settleGrant(grantId: string): Promise<SeenGrant> {
      const grant = await expireGrant(database, rowIdOf('grant', grantId));
      if (!grant) throw ApplicationFailure.nonRetryable(`there is no ${grantId}`, 'not_found');
      const { type, status, uses, expiresInMs } = grant;
      return { type, status, uses, expiresInMs };
    },
  };
}
