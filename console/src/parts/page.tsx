/** The layout of a page: its title, actions beside it, and cards below. */
import { Box, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useEffect, type ReactNode } from 'react';

interface PageProps {
  readonly title: string;
  readonly intro?: ReactNode;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, intro, aside, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Farebox`;
  }, [title]);
  return (
    <Stack gap="lg" className="page">
      <Group justify="space-between" align="flex-end" gap="sm">
        <Box>
          <Title order={1} className="breaks">
            <bdi>{title}</bdi>
          </Title>
          {intro !== undefined && (
            <Text c="dimmed" mt={4} maw={640} className="breaks">
              {intro}
            </Text>
          )}
        </Box>
        {aside}
      </Group>
      {children}
    </Stack>
  );
}

/** One figure of a page, in large type. A screen reader says when it changes. */
export function Figure({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ReactNode;
}) {
  return (
    <Card>
      <Text c="dimmed">{label}</Text>
      <Text fz={{ base: 28, sm: 32 }} fw={650} lh={1.25} className="breaks" aria-live="polite">
        {children}
      </Text>
    </Card>
  );
}

interface CardProps {
  readonly title?: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  /** Without padding, for tables, which have their own. */
  readonly flush?: boolean;
}

export function Card({ title, aside, children, flush = false }: CardProps) {
  return (
    <Paper
      component="section"
      {...(flush ? { p: 0 } : { p: { base: 'md', xs: 'lg' } })}
      style={{ overflow: 'hidden' }}
    >
      {title !== undefined && (
        <Group
          justify="space-between"
          gap="sm"
          {...(flush ? { className: 'flush-head' } : { mb: 'md' })}
        >
          <Title order={2} className="breaks">
            <bdi>{title}</bdi>
          </Title>
          {aside}
        </Group>
      )}
      {children}
    </Paper>
  );
}
