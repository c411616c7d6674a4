-- Refunds that the processor has not answered for are looked for every minute, among all that ever were.
create index reversals_requested on farebox.reversals (updated_at) where status = 'requested';
