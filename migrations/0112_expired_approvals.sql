-- Approvals that nobody answered were kept forever, although nothing names them. The schedule that deletes old events now deletes
-- them too, and finds them by this index.
-- Locks: SHARE on approvals, for as long as it takes to read them: asking and answering wait. Charges read approvals only when a
-- budget refuses them. The previous release may run beside it.

create index approvals_expired on farebox.approvals (id) where status = 'expired';
