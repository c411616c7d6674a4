/** First steps for a new account. Each is ticked off once it is done. Once all are done, the card is gone at the next visit. */
import { Anchor, Group, Stack, Text, ThemeIcon, VisuallyHidden } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Card } from './page.tsx';

export interface Step {
  readonly title: string;
  readonly text: string;
  readonly to?: string;
  readonly isDone: boolean;
}

export function Steps({
  title,
  steps,
}: {
  readonly title: string;
  readonly steps: readonly Step[];
}) {
  const done = steps.filter(({ isDone }) => isDone).length;
  // The card stays when the last step is done, and each step keeps its lines: what is below must not move.
  const [wasDone] = useState(done === steps.length);
  if (wasDone) return null;
  return (
    <Card
      title={title}
      aside={
        <Text size="sm" c="dimmed">
          {done} of {steps.length} done
        </Text>
      }
    >
      <Stack component="ol" gap="md" m={0} p={0} style={{ listStyle: 'none' }}>
        {steps.map((step, index) => (
          <Group component="li" key={step.title} align="flex-start" wrap="nowrap" gap="sm">
            <ThemeIcon
              size={26}
              radius="xl"
              variant={step.isDone ? 'filled' : 'default'}
              color="green.9"
              aria-hidden
            >
              {step.isDone ? <IconCheck size={15} /> : <Text size="sm">{index + 1}</Text>}
            </ThemeIcon>
            <div>
              {step.to === undefined || step.isDone ? (
                <Text fw={600}>{step.title}</Text>
              ) : (
                <Anchor component={Link} to={step.to} fw={600} underline="always">
                  {step.title}
                </Anchor>
              )}
              <Text size="sm" c="dimmed">
                {step.isDone && <VisuallyHidden>Done: </VisuallyHidden>}
                {step.text}
              </Text>
            </div>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
