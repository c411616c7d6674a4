-- A consumer's usage of one tool is net of its refunds, which each page adds up. By this index, it reads those of the tool alone:
-- with a million refunds, others took more than a second.
-- Locks: farebox.charge_refunds, share, while the index is built: refunds wait, charges do not. Seconds for a million of them.
create index charge_refunds_tool on farebox.charge_refunds (ledger, consumer_id, tool, id) include (amount_micros);
