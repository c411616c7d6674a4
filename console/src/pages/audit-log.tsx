/** The audit log: of the account that is signed in, and of all accounts for operators. */
import { useQuery } from '@tanstack/react-query';
import type { OperatorAuditLog } from '../answers.ts';
import { read } from '../api.ts';
import { AuditEntries } from '../parts/audit-entries.tsx';
import { lacksSecondFactor, SecondFactorNote } from '../parts/operator.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';

const INTRO = 'Who changed access to';

export function AuditLogPage() {
  return (
    <Page
      title="Audit log"
      intro={`${INTRO} your account, or its money by hand. Entries are never changed or deleted.`}
    >
      <Card flush>
        <AuditEntries path="/v1/audit-log?limit=50" />
      </Card>
    </Page>
  );
}

export function OperatorAuditLogPage() {
  // The list polls nothing, so its first answer also says whether this operator may read it.
  const allowed = useQuery({
    queryKey: ['operator-audit-log'],
    queryFn: () => read<OperatorAuditLog>('/v1/operator/audit-log?limit=1'),
  });
  return (
    <Page title="Audit log" intro={`${INTRO} any account, or its money by hand.`}>
      <SecondFactorNote error={allowed.error} />
      {!lacksSecondFactor(allowed.error) && (
        <Loaded query={allowed}>
          {() => (
            <Card flush>
              <AuditEntries path="/v1/operator/audit-log?limit=50" />
            </Card>
          )}
        </Loaded>
      )}
    </Page>
  );
}
