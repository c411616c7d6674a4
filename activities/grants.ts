/** The step of a grant's workflow. It may run twice: conditions on the row decide. */
import { ApplicationFailure } from '@temporalio/activity';
import type { GrantStatus, GrantType } from '../src/domain/grant.ts';
import type { Database } from '../src/store/database.ts';
import { expireGrant } from '../src/store/agents/grants.ts';
import { rowIdOf } from './row-id.ts';

/** The state of a grant for its workflow. No personal data, since histories keep it. */
export interface SeenGrant {
  readonly type: GrantType;
  readonly status: GrantStatus;
  readonly uses: number;
  readonly expiresInMs: number;
}

export type GrantActivities = ReturnType<typeof createGrantActivities>;

export function createGrantActivities({ database }: { readonly database: Database }) {
  return {
    /** Reads the grant, and records its expiry if it has expired. */
    async settleGrant(grantId: string): Promise<SeenGrant> {
      const grant = await expireGrant(database, rowIdOf('grant', grantId));
      if (!grant) throw ApplicationFailure.nonRetryable(`${grantId} not found`, 'not_found');
      const { type, status, uses, expiresInMs } = grant;
      return { type, status, uses, expiresInMs };
    },
  };
}
