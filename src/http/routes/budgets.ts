/** The rows of the table of routes for budgets and the spend keys that are handed out for them. */
import { BudgetBody, BudgetChanges, BudgetReply } from '../../schemas/budgets.ts';
import { BudgetsQuery, BudgetsReply } from '../../schemas/budgets.ts';
import { BudgetUsageFileQuery, BudgetUsageQuery, BudgetUsageReply } from '../../schemas/budgets.ts';
import { CloseBudgetBody, SpendKeyBody, SpendKeysReply } from '../../schemas/budgets.ts';
import { NewKeyReply } from '../../schemas/keys.ts';
import { BudgetRefusalsReply, RefusalsQuery } from '../../schemas/refusals.ts';
import { Id, PageQuery } from '../../schemas/shapes.ts';
import type { Endpoint } from '../endpoint.ts';
import {
  getBudget,
  getBudgets,
  patchBudget,
  postBudget,
  postBudgetClosing,
  postBudgetReopening,
} from '../handlers/budgets/budgets.ts';
import { getSpendKeys, postSpendKey } from '../handlers/budgets/spend-keys.ts';
import { exportBudgetUsage, getBudgetUsage } from '../handlers/budgets/usage.ts';
import { getBudgetRefusals } from '../handlers/refusals/refusals.ts';
import { csv, get } from '../read-endpoints.ts';
import { act, patch, post } from '../write-endpoints.ts';

const budgetParams = { id: Id('budget', 'The id of the budget.') };

export const BUDGET_ENDPOINTS: readonly Endpoint[] = [
  post('/v1/budgets', {
    operation: 'createBudget',
    role: 'payer',
    body: BudgetBody,
    replies: { 201: BudgetReply },
    errors: ['invalid_amount', 'not_found', 'budget_closed', 'delegation_not_allowed'],
    isIdempotent: true,
    handle: postBudget,
  }),
  get('/v1/budgets', {
    operation: 'listBudgets',
    role: 'payer',
    query: BudgetsQuery,
    replies: { 200: BudgetsReply },
    errors: ['not_found'],
    handle: getBudgets,
  }),
  get('/v1/budgets/:id', {
    operation: 'getBudget',
    role: 'payer',
    params: budgetParams,
    replies: { 200: BudgetReply },
    errors: ['not_found'],
    handle: getBudget,
  }),
  patch('/v1/budgets/:id', {
    operation: 'updateBudget',
    role: 'payer',
    params: budgetParams,
    body: BudgetChanges,
    replies: { 200: BudgetReply },
    errors: ['invalid_amount', 'not_found', 'budget_closed', 'delegation_not_allowed'],
    handle: patchBudget,
  }),
  post('/v1/budgets/:id/close', {
    operation: 'closeBudget',
    role: 'payer',
    params: budgetParams,
    body: CloseBudgetBody,
    isBodyOptional: true,
    replies: { 200: BudgetReply },
    errors: ['not_found', 'delegation_not_allowed'],
    handle: postBudgetClosing,
  }),
  act('/v1/budgets/:id/reopen', {
    operation: 'reopenBudget',
    role: 'session',
    params: budgetParams,
    replies: { 200: BudgetReply },
    errors: ['not_found', 'budget_not_reopenable'],
    handle: postBudgetReopening,
  }),
  get('/v1/budgets/:id/usage', {
    operation: 'getBudgetUsage',
    role: 'payer',
    params: budgetParams,
    query: BudgetUsageQuery,
    replies: { 200: BudgetUsageReply },
    errors: ['not_found'],
    handle: getBudgetUsage,
  }),
  csv('/v1/budgets/:id/usage.csv', {
    operation: 'exportBudgetUsage',
    role: 'payer',
    params: budgetParams,
    query: BudgetUsageFileQuery,
    errors: ['not_found'],
    handle: exportBudgetUsage,
  }),
  get('/v1/budgets/:id/refusals', {
    operation: 'listBudgetRefusals',
    role: 'payer',
    params: budgetParams,
    query: RefusalsQuery,
    replies: { 200: BudgetRefusalsReply },
    errors: ['not_found'],
    handle: getBudgetRefusals,
  }),
  post('/v1/budgets/:id/keys', {
    operation: 'createSpendKey',
    role: 'payer',
    params: budgetParams,
    body: SpendKeyBody,
    replies: { 201: NewKeyReply },
    errors: ['not_found', 'budget_closed', 'delegation_not_allowed'],
    isIdempotent: true,
    handle: postSpendKey,
  }),
  get('/v1/budgets/:id/keys', {
    operation: 'listSpendKeys',
    role: 'payer',
    params: budgetParams,
    query: PageQuery,
    replies: { 200: SpendKeysReply },
    errors: ['not_found', 'delegation_not_allowed'],
    handle: getSpendKeys,
  }),
];
