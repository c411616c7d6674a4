/** The developer's newest charges, of all tools or of one, with the way to the others. */
import { Anchor } from '@mantine/core';
import { IconReceipt } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Charges } from '../answers.ts';
import { ChargeTable } from './charges.tsx';
import { Card } from './page.tsx';
import { Empty, Loaded } from './states.tsx';

interface RecentChargesProps {
  readonly query: UseQueryResult<Charges>;
  readonly tool?: string;
  /** Shown while there are none. */
  readonly children: ReactNode;
}

export function RecentCharges({ query, tool, children }: RecentChargesProps) {
  const navigate = useNavigate();
  return (
    <Card
      title="Recent charges"
      flush
      aside={
        <Anchor
          size="sm"
          renderRoot={(props) => <Link to="/developer/charges" search={{ tool }} {...props} />}
        >
          All charges
        </Anchor>
      }
    >
      <Loaded query={query}>
        {({ charges }) =>
          charges.length === 0 ? (
            <Empty icon={<IconReceipt size={22} />} title="No charges yet">
              {children}
            </Empty>
          ) : (
            <ChargeTable
              charges={charges}
              onOpen={(charge) => void navigate({ to: '/developer/charges', search: { charge } })}
            />
          )
        }
      </Loaded>
    </Card>
  );
}
