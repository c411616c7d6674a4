-- The workflow `reversals` reads a top-up's refunds and disputes once the top-up is credited. One that is reported or seen
-- before that is noted here, and the transaction of the credit starts the workflow.
-- Locks: ACCESS EXCLUSIVE on the top-ups while they are read once for the index. Charges do not touch them. The previous
-- release runs beside it: its workflows read refunds and disputes themselves.

alter table farebox.top_ups add column reversal_reported boolean not null default false;
comment on column farebox.top_ups.reversal_reported is
  'A refund or dispute was reported or seen before the credit, which then has it read.';

-- Taxed payments by the saved card get their invoice after the credit, too. The sweep looks for missing ones once a minute.
create index top_ups_without_invoice on farebox.top_ups (completed_at)
  where tax_calculation_id is not null and invoice_id is null;
comment on column farebox.top_ups.invoice_id is 'The processor''s invoice of a taxed payment. Refunds add credit notes to it.';
