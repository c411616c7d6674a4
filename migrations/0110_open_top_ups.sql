-- The operators' page, the metrics and the comparison with the processor read every checkout that ever expired or failed, to find
-- the few top-ups that are still open.
-- Locks: SHARE on top_ups, for as long as it takes to read them twice, then ACCESS EXCLUSIVE to drop an index: top-ups wait. No
-- charge reads top_ups. The comparison of the previous release is slower until that release is gone.

create index top_ups_open on farebox.top_ups (id) where status in ('pending', 'disputed');
create index top_ups_ended_unseen on farebox.top_ups (updated_at)
  where status in ('expired', 'failed') and seen_verdict is null;
drop index farebox.top_ups_unsettled;
