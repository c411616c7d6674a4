/** The last result of each part of `farebox doctor`, so that operators see it without running it. */
import { Type, type Static } from 'typebox';
import { nullable, row, sql, type Connection } from '../database.ts';
import type { Finding } from './findings.ts';

const Examination = Type.Object({
  part: Type.String(),
  endedAt: Type.String(),
  findings: Type.Array(
    Type.Object({
      check: Type.String(),
      subject: Type.String(),
      detail: Type.String(),
      offenders: Type.Integer(),
    }),
  ),
});
export type Examination = Static<typeof Examination>;

const examinationRow = row(Examination);
const walkRow = row(Type.Object({ walkedUntil: nullable(Type.String()) }));

export async function recordExaminations(
  connection: Connection,
  parts: readonly string[],
  findings: readonly Finding[],
): Promise<void> {
  const byPart = Map.groupBy(findings, ({ part }) => part);
  await connection.query(sql.typeAlias('nothing')`
    insert into farebox.examinations (part, ended_at, findings)
    select part, now(), findings::jsonb
    from ${sql.unnest(
      parts.map((part) => [
        part,
        JSON.stringify(
          (byPart.get(part) ?? []).map(({ check, subject, detail, offenders }) => ({
            check,
            subject,
            detail,
            offenders,
          })),
        ),
      ]),
      ['text', 'text'],
    )} as e (part, findings)
    on conflict (part) do update set ended_at = excluded.ended_at, findings = excluded.findings
  `);
}

export async function listExaminations(connection: Connection): Promise<readonly Examination[]> {
  return connection.any(sql.type(examinationRow)`
    select part, ended_at as "endedAt", findings from farebox.examinations order by ended_at, part
  `);
}

/** Until when the processor's books have been compared with ours; null before the first time. */
export async function findWalkedUntil(connection: Connection): Promise<string | null> {
  return connection.oneFirst(sql.type(walkRow)`
    select (select walked_until from farebox.reconciliation) as "walkedUntil"
  `);
}
