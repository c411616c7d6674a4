/** One tool of the developer: what it costs, earned and charged, and the code that charges for it. */
import { Anchor, Badge, Button, Group, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Charges, Earnings, OneTool } from '../answers.ts';
import { read } from '../api.ts';
import { ToolSnippet } from '../parts/charge-snippet.tsx';
import { EarningsFigures } from '../parts/earnings-figures.tsx';
import { EarningsOverTime } from '../parts/earnings-over-time.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { Figure, Page } from '../parts/page.tsx';
import { RateCard } from '../parts/rate-card.tsx';
import { RecentCharges } from '../parts/recent-charges.tsx';
import { Loaded } from '../parts/states.tsx';
import { ToolForm } from '../parts/tool-form.tsx';
import { Money } from '../parts/values.tsx';

const POLL_MS = 5_000;

export function ToolPage() {
  const { toolId } = useParams({ from: '/shell/developer/tools/$toolId' });
  const tool = useQuery({
    queryKey: ['tools', 'one', toolId],
    queryFn: () => read<OneTool>(`/v1/tools/${encodeURIComponent(toolId)}`),
  });
  const [isEditing, setEditing] = useState(false);
  const close = () => setEditing(false);
  return (
    <Page
      title={tool.data?.name ?? 'Tool'}
      intro={tool.data?.description}
      aside={
        tool.data && (
          <Button variant="default" onClick={() => setEditing(true)}>
            Edit tool
          </Button>
        )
      }
    >
      <Group justify="space-between">
        <Anchor component={Link} to="/developer/tools" size="sm">
          All tools
        </Anchor>
        {tool.data?.archived === true && (
          <Badge variant="default" tt="none" fw={500}>
            Archived
          </Badge>
        )}
      </Group>
      <Loaded query={tool}>{(found) => <Found tool={found} />}</Loaded>
      <FormDialog opened={isEditing} onClose={close} title="Edit tool">
        {isEditing && tool.data && (
          <ToolForm tool={tool.data} isArchived={tool.data.archived} onDone={close} />
        )}
      </FormDialog>
    </Page>
  );
}

function Found({ tool }: { readonly tool: OneTool }) {
  const { id, name, price, card, archived } = tool;
  const { days } = useSearch({ from: '/shell/developer/tools/$toolId' });
  const navigate = useNavigate();
  const only = new URLSearchParams({ tool: name });
  const earnings = useQuery({
    queryKey: ['earnings', name],
    queryFn: () => read<Earnings>(`/v1/earnings?${only}`),
    refetchInterval: POLL_MS,
  });
  const recent = useQuery({
    queryKey: ['recent-charges', name],
    queryFn: () => read<Charges>(`/v1/charges?limit=10&${only}`),
    refetchInterval: POLL_MS,
  });
  return (
    <>
      <Loaded query={earnings}>
        {(all) => (
          <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="lg">
            <Figure label="Price per call">
              {price === null ? (
                <Text span c="dimmed">
                  {!card ? 'Set by each charge' : 'By the unit'}
                </Text>
              ) : (
                <Money dollars={price} />
              )}
            </Figure>
            <EarningsFigures {...all} />
          </SimpleGrid>
        )}
      </Loaded>
      <RateCard tool={tool} />
      <EarningsOverTime
        days={days}
        onDays={(chosen) =>
          void navigate({
            to: '/developer/tools/$toolId',
            params: { toolId: id },
            search: { days: chosen },
            resetScroll: false,
          })
        }
        tool={name}
      />
      <RecentCharges query={recent} tool={name}>
        Charges for this tool appear here as they are made.
      </RecentCharges>
      {!archived && <ToolSnippet tool={tool} />}
    </>
  );
}
