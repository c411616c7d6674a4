/** The rows of the table of routes for statements, of either role. */
import { Month, StatementQuery, StatementReply } from '../../schemas/statements.ts';
import type { Endpoint } from '../endpoint.ts';
import { exportStatement, getStatement } from '../handlers/earnings/statements.ts';
import { csv, get } from '../read-endpoints.ts';

const monthParams = { month: Month };

export const STATEMENT_ENDPOINTS: readonly Endpoint[] = [
  csv('/v1/statements/:month.csv', {
    operation: 'exportStatement',
    role: 'either',
    params: monthParams,
    query: StatementQuery,
    errors: ['invalid_request'],
    handle: exportStatement,
  }),
  get('/v1/statements/:month', {
    operation: 'getStatement',
    role: 'either',
    share: 'none',
    params: monthParams,
    query: StatementQuery,
    replies: { 200: StatementReply },
    errors: ['invalid_request'],
    handle: getStatement,
  }),
];
